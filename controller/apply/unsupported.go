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

// EventUnsupported is the reason of the Event on the first import of which
// something is refused or dropped by an API server that does not know it.
const EventUnsupported = "UnsupportedByAPIServer"

// unsupported remembers what the API server was found not to know, so that it
// is not asked for in each pass.
type unsupported struct {
	mu    sync.Mutex
	known merge.Unsupported
	// oneIP is the schema that refused the second IP of a dual-stack ServiceImport:
	// definitions of the MCS API before v0.2.0 allow one.
	oneIP string
}

func (u *unsupported) get() merge.Unsupported {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.known
	known.Distributions = slices.Clone(known.Distributions)
	return known
}

// noteDistribution returns whether that is news.
func (u *unsupported) noteDistribution(value string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if slices.Contains(u.known.Distributions, value) {
		return false
	}
	u.known.Distributions = append(u.known.Distributions, value)
	return true
}

// noteNodeHints returns whether that is news.
func (u *unsupported) noteNodeHints() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	news := !u.known.NodeHints
	u.known.NodeHints = true
	return news
}

// Retry has everything asked for again that the API server was found not to
// know. It returns whether there is anything: then all services are to be looked
// at.
func (a *Applier) Retry() bool {
	a.unsupported.mu.Lock()
	defer a.unsupported.mu.Unlock()
	known := a.unsupported.known
	any := len(known.Distributions) > 0 || known.NodeHints
	a.unsupported.known = merge.Unsupported{}
	return any
}

// Unsupported returns what the API server was found not to know.
func (a *Applier) Unsupported() merge.Unsupported { return a.unsupported.get() }

// refusesDistribution looks at the outcome of a write of the derived Service. It
// returns true if the API server is found not to know the trafficDistribution that
// was asked for: the next merge asks for another one. If that was known before, the
// refusal is an error like any other.
func (p *pass) refusesDistribution(ctx context.Context, written *corev1.Service, err error) bool {
	asked := ptr.Deref(p.result.DerivedService.Spec.TrafficDistribution, "")
	dropped := err == nil && written != nil && written.Spec.TrafficDistribution == nil
	if asked == "" || !dropped && !isAbout(err, "spec.trafficDistribution") || !p.unsupported.noteDistribution(asked) {
		return false
	}
	p.tellUnsupported(ctx, "The API server does not know the trafficDistribution "+asked+
		". Derived Services have the nearest one that it knows, or none")
	return true
}

// dropsNodeHints looks at a slice that was written.
func (p *pass) dropsNodeHints(ctx context.Context, desired, written *discoveryv1.EndpointSlice) {
	if hasNodeHints(desired) && !hasNodeHints(written) && p.unsupported.noteNodeHints() {
		p.tellUnsupported(ctx, "The API server does not keep hints for nodes in EndpointSlices, so that clients which prefer endpoints of their node use those of their zone")
	}
}

// supported leaves out what the schema refuses of an import.
func (u *unsupported) supported(desired *v1beta1.ServiceImport, schema string) *v1beta1.ServiceImport {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.oneIP == schema && len(desired.Spec.IPs) > 1 {
		desired = desired.DeepCopy()
		desired.Spec.IPs = desired.Spec.IPs[:1]
	}
	return desired
}

// refusesSecondIP looks at the outcome of a write of the import. It returns true
// if the schema is found to refuse the second IP.
func (p *pass) refusesSecondIP(ctx context.Context, desired *v1beta1.ServiceImport, err error) bool {
	if len(desired.Spec.IPs) < 2 || !isAbout(err, "spec.ips") {
		return false
	}
	p.unsupported.mu.Lock()
	p.unsupported.oneIP = p.access.Schema()
	p.unsupported.mu.Unlock()
	p.tellUnsupported(ctx, "The CustomResourceDefinition of ServiceImports allows one IP. Dual-stack imports have the first one")
	return true
}

// tellUnsupported tells once what is so for all imports.
func (p *pass) tellUnsupported(ctx context.Context, what string) {
	klog.FromContext(ctx).Info(what, "service", p.observed.Service)
	if serviceImport := p.observed.ServiceImport; serviceImport != nil {
		p.Recorder.Event(serviceImport, corev1.EventTypeWarning, EventUnsupported,
			what+". It is so for all imports, and told once")
	}
}

// isAbout tells whether the API server refused an object for the value of a
// field.
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
