// SPDX-License-Identifier: Apache-2.0

// Package heartbeat renews the heartbeat of the local cluster while the EndpointSlices that the cluster publishes are
// kept up to date (docs/design.md, "Heartbeat").
package heartbeat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// retryAfter is the time after which a failed renewal is retried.
const retryAfter = time.Second

// A Reason is why the heartbeat is not renewed, and a value of the label reason of a metric.
type Reason string

// Reasons.
const (
	// None: the heartbeat is renewed.
	None Reason = ""
	// InputsLate: objects that exports depend on cannot be read.
	InputsLate Reason = "inputs"
	// WritesFail: EndpointSlices cannot be written in any namespace.
	WritesFail Reason = "writes"
)

// Reasons lists every Reason except None.
var Reasons = []Reason{InputsLate, WritesFail}

// Config configures a Renewer.
type Config struct {
	Client kubernetes.Interface
	// Namespace is the namespace of the Lease.
	Namespace string
	// Cluster is the id of the local cluster.
	Cluster  string
	Clock    clock.WithTicker
	Recorder record.EventRecorder
	// After is how long a fault may last before the heartbeat stops.
	After time.Duration
	// Late returns the name of a resource on which exports depend, if it is not served or could not be read for at least
	// longer; otherwise empty.
	Late func(longer time.Duration) string
	// Retry reconciles a service at once, regardless of its backoff, because its slices could not be written.
	Retry func(service types.NamespacedName)
	// Annotations returns the annotations of the heartbeat, as they are now, always with the same keys.
	Annotations func() map[string]string
}

// A Renewer renews the heartbeat Lease while this replica leads and the published EndpointSlices are kept up to date
// (docs/design.md, "Heartbeat"). The Reconciler ends a reconcile that hangs, and reports it as failed. A Renewer is safe for
// concurrent use; one goroutine runs it.
type Renewer struct {
	Config

	mu sync.Mutex
	// unseen are the expected services that were not reconciled yet.
	unseen map[types.NamespacedName]struct{}
	seen   chan struct{}
	// late are the services whose published slices are out of date, and since when.
	late    map[types.NamespacedName]time.Time
	reason  Reason
	message string
}

// New returns the Renewer of a new leader. expected are the services that the cluster exports or publishes slices for. The
// Renewer owns the map.
func New(config Config, expected map[types.NamespacedName]struct{}) *Renewer {
	h := &Renewer{Config: config, unseen: expected, seen: make(chan struct{}), late: map[types.NamespacedName]time.Time{}}
	if len(expected) == 0 {
		close(h.seen)
	}
	return h
}

// EventHeartbeatStopped on the Lease of the heartbeat: the published endpoints are not maintained.
const EventHeartbeatStopped = "HeartbeatStopped"

// Last returns the last heartbeat of the cluster, empty if there is none or if it may not be read. It is an error if it has
// another cluster id: the other members would take the deletion of the slices of the former id for a withdrawal of all exports.
// Last retries until the API server answers or the context ends.
func Last(ctx context.Context, client kubernetes.Interface, namespace, cluster string) (lease *coordinationv1.Lease, err error) {
	_ = local.Await(ctx, "the heartbeat of this cluster", func(ctx context.Context) (_ bool, err error) {
		lease, err = client.CoordinationV1().Leases(namespace).Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
		// If the right to read the Lease is missing, the renewal reports the error.
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err), err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if before := ptr.Deref(lease.Spec.HolderIdentity, ""); before != "" && before != cluster {
		return nil, fmt.Errorf("the cluster id is %s, and was %s before, by the Lease %s/%s: correct the id, or change it as in "+
			"docs/operate/members.md, so that the other clusters do not lose all exports of this one", cluster, before,
			namespace, member.HeartbeatLease)
	}
	return lease, nil
}

// Doubt returns why the heartbeat may not be renewed now, or None, and reports each change of the reason. It calls apply.Probe
// if a service is late.
func (h *Renewer) Doubt(ctx context.Context) Reason {
	reason, message := h.doubt(ctx)
	h.mu.Lock()
	before := h.reason
	h.reason, h.message = reason, message
	h.mu.Unlock()
	switch {
	case ctx.Err() != nil, reason == before:
	case reason != None:
		message = "The heartbeat is not renewed, so other clusters demote this one: " + message
		klog.FromContext(ctx).Error(nil, message, "reason", string(reason))
		h.Recorder.Event(&corev1.ObjectReference{
			APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: h.Namespace, Name: member.HeartbeatLease,
		}, corev1.EventTypeWarning, EventHeartbeatStopped, message)
	default:
		klog.FromContext(ctx).Info("The heartbeat is renewed again")
	}
	if reason == None && before == WritesFail {
		for _, service := range h.Unpublished() {
			h.Retry(service)
		}
	}
	return reason
}

// Run renews until the context ends, as long as the slices are kept up to date.
func (h *Renewer) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-h.seen:
	}
	for failing := false; ; {
		next := liveness.HeartbeatInterval
		if h.Doubt(ctx) == None {
			err := h.renew(ctx)
			if err != nil && !failing && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Cannot renew the heartbeat; retrying", "lease", klog.KRef(h.Namespace, member.HeartbeatLease))
			}
			if failing = err != nil; failing {
				next = retryAfter
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-h.Clock.After(next):
		}
	}
}

// renew writes the Lease.
func (h *Renewer) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, liveness.HeartbeatInterval)
	defer cancel()
	lease := applycoordinationv1.Lease(member.HeartbeatLease, h.Namespace).WithAnnotations(h.Annotations()).
		WithSpec(applycoordinationv1.LeaseSpec().WithHolderIdentity(h.Cluster).WithRenewTime(metav1.NewMicroTime(h.Clock.Now())))
	_, err := h.Client.CoordinationV1().Leases(h.Namespace).Apply(ctx, lease,
		metav1.ApplyOptions{FieldManager: export.Manager, Force: true})
	return err
}

// Seen is closed once each expected service was reconciled. Before that it is unknown whether the
// published slices are up to date.
func (h *Renewer) Seen() <-chan struct{} { return h.seen }

// Reconciled notes that a service was reconciled. err is why its published slices are out of date, nil if they are not.
func (h *Renewer) Reconciled(service types.NamespacedName, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, unseen := h.unseen[service]; unseen {
		if delete(h.unseen, service); len(h.unseen) == 0 {
			close(h.seen)
		}
	}
	_, known := h.late[service]
	switch {
	case err == nil:
		delete(h.late, service)
	case !known:
		h.late[service] = h.Clock.Now()
	}
}

// doubt returns the reason, and a message for an administrator.
func (h *Renewer) doubt(ctx context.Context) (Reason, string) {
	h.mu.Lock()
	var late types.NamespacedName
	for service, since := range h.late {
		if h.Clock.Since(since) >= h.After && (late.Name == "" || service.String() < late.String()) {
			late = service
		}
	}
	h.mu.Unlock()

	if resource := h.Late(h.After); resource != "" {
		return InputsLate, fmt.Sprintf("%s of this cluster cannot be read. Check the API server, the "+
			"CustomResourceDefinitions of the MCS API, and the rights of the controller", resource)
	}
	if late.Name == "" {
		return None, ""
	}
	// The quota or the webhooks of one namespace must not stop the heartbeat of the whole cluster: writes have to fail
	// elsewhere too.
	ctx, cancel := context.WithTimeout(ctx, liveness.HeartbeatInterval)
	defer cancel()
	if err := apply.Probe(ctx, h.Client, h.Namespace, h.Cluster); err != nil {
		return WritesFail, fmt.Sprintf(
			"EndpointSlices cannot be written, those of service %s for %s: %v. Look at the rights "+
				"of the controller and at the admission webhooks for EndpointSlices", late, h.After, err)
	}
	return None, ""
}

// Doubted returns the last result of Doubt, and a message for an administrator.
func (h *Renewer) Doubted() (Reason, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason, h.message
}

// Unpublished returns the services whose published slices are out of date, in no order.
func (h *Renewer) Unpublished() []types.NamespacedName {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.late))
}
