// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// EventUnsupported is the reason of the Event on the first import with a field that the API server does not know.
const EventUnsupported = "UnsupportedByAPIServer"

// unsupported holds the fields and values that the API server does not know, so that they are not tried in each pass, until
// the process restarts.
type unsupported struct {
	mu    sync.Mutex
	known merge.Unsupported
	// oneIP is set once the second IP of a dual-stack ServiceImport was refused: definitions of the MCS API before v0.2.0
	// allow one. The process restarts with another definition.
	oneIP bool
}

func (u *unsupported) get() merge.Unsupported {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.known
	known.Distributions = slices.Clone(known.Distributions)
	return known
}

// noteDistribution adds a value and reports whether it was new.
func (u *unsupported) noteDistribution(value string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if slices.Contains(u.known.Distributions, value) {
		return false
	}
	u.known.Distributions = append(u.known.Distributions, value)
	return true
}

// noteNodeHints reports whether node hints were known as supported before.
func (u *unsupported) noteNodeHints() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	first := !u.known.NodeHints
	u.known.NodeHints = true
	return first
}

// Unsupported returns what the API server does not know.
func (a *Applier) Unsupported() merge.Unsupported { return a.unsupported.get() }

// refusesDistribution reports whether a write of the derived Service shows for the first time that the API server does
// not know the trafficDistribution. The next merge then uses another value. Later refusals are ordinary errors.
func (p *pass) refusesDistribution(ctx context.Context, written *corev1.Service, err error) bool {
	asked := ptr.Deref(p.result.DerivedService.Spec.TrafficDistribution, "")
	dropped := err == nil && written != nil && written.Spec.TrafficDistribution == nil
	if asked == "" || !dropped && !isAbout(err, "spec.trafficDistribution") || !p.unsupported.noteDistribution(asked) {
		return false
	}
	p.reportUnsupported(ctx, "The API server does not know the trafficDistribution "+asked+
		". Derived Services have the nearest one that it knows, or none")
	return true
}

// dropsNodeHints records an API server that drops the node hints of a slice.
func (p *pass) dropsNodeHints(ctx context.Context, desired, written *discoveryv1.EndpointSlice) {
	if hasNodeHints(desired) && !hasNodeHints(written) && p.unsupported.noteNodeHints() {
		p.reportUnsupported(ctx, "The API server does not keep hints for nodes in EndpointSlices, so that clients which prefer endpoints of their node use those of their zone")
	}
}

// supported returns the import without the fields that the schema refuses.
func (u *unsupported) supported(desired *v1beta1.ServiceImport) *v1beta1.ServiceImport {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.oneIP && len(desired.Spec.IPs) > 1 {
		desired = desired.DeepCopy()
		desired.Spec.IPs = desired.Spec.IPs[:1]
	}
	return desired
}

// refusesSecondIP reports whether a write of the import shows that the schema refuses the second IP.
func (p *pass) refusesSecondIP(ctx context.Context, desired *v1beta1.ServiceImport, err error) bool {
	if len(desired.Spec.IPs) < 2 || !isAbout(err, "spec.ips") {
		return false
	}
	p.unsupported.mu.Lock()
	p.unsupported.oneIP = true
	p.unsupported.mu.Unlock()
	p.reportUnsupported(ctx,
		"The CustomResourceDefinition of ServiceImports allows one IP. Dual-stack imports have the first one")
	return true
}

// reportUnsupported reports a limitation of the API server, which affects all imports, on one of them.
func (p *pass) reportUnsupported(ctx context.Context, what string) {
	klog.FromContext(ctx).Info(what, "service", p.observed.Service)
	if serviceImport := p.observed.ServiceImport; serviceImport != nil {
		p.Recorder.Event(serviceImport, corev1.EventTypeWarning, EventUnsupported,
			what+". This affects all imports and is reported once")
	}
}

// isAbout reports whether the API server refused an object for the value of a field.
func isAbout(err error, field string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes,
		func(cause metav1.StatusCause) bool { return cause.Field == field })
}

func hasNodeHints(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(endpoint discoveryv1.Endpoint) bool {
		return endpoint.Hints != nil && len(endpoint.Hints.ForNodes) > 0
	})
}
