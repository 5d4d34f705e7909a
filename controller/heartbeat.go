// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/vouch"
)

// heartbeatRetry is the time after which a renewal that failed is tried again.
const heartbeatRetry = time.Second

// A heartbeat renews the Lease by which the members of the set see that this
// cluster's slices are kept true (docs/design/heartbeat.md). One goroutine
// runs it.
type heartbeat struct {
	client        kubernetes.Interface
	namespace     string
	cluster       string
	kubeSystemUID string
	version       string // empty if it is not known
	clock         clock.WithTicker
	recorder      record.EventRecorder
	// record says whether the slices are kept true.
	record *vouch.Record
	// retry reconciles a service whose slices could not be written.
	retry func(types.NamespacedName)

	last    *coordinationv1.Lease // as last written
	stopped vouch.Reason          // as reported
	// announced tells that the others read another id before this term.
	announced bool
}

// Reasons of Events on the Lease of the heartbeat.
const (
	EventHeartbeatStopped = "HeartbeatStopped"
	EventHeartbeatResumed = "HeartbeatResumed"
)

// announce renews a heartbeat that was written under another id, or in another
// cluster, and waits until the other members have read it. They would take the
// removal of the slices of the former id for a withdrawal of its exports.
func (h *heartbeat) announce(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, member.HeartbeatInterval)
	defer cancel()
	existing, err := h.client.CoordinationV1().Leases(h.namespace).Get(asking, member.HeartbeatLease, metav1.GetOptions{})
	if err != nil {
		return // run reports it
	}
	before := ptr.Deref(existing.Spec.HolderIdentity, "")
	uid := existing.Annotations[member.HeartbeatUIDAnnotation]
	if before == h.cluster && uid == h.kubeSystemUID {
		return
	}
	klog.FromContext(ctx).Info("The heartbeat was written by another cluster or under another id; announcing this one before the work begins", "before", before, "cluster", h.cluster)
	if err := h.renew(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot announce the id of this cluster", "lease", klog.KRef(h.namespace, member.HeartbeatLease))
		return
	}
	h.announced = true
	h.sleep(ctx, member.HeartbeatInterval)
}

// doubt returns how long to wait because the slices are not kept true, 0 if
// they are. It reports when that changes.
func (h *heartbeat) doubt(ctx context.Context) time.Duration {
	asking, cancel := context.WithTimeout(ctx, member.HeartbeatInterval)
	defer cancel()
	reason, message := h.record.Doubt(asking)
	if ctx.Err() != nil {
		return heartbeatRetry
	}
	lease := &corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: h.namespace, Name: member.HeartbeatLease}
	before := h.stopped
	h.stopped = reason
	switch {
	case reason != vouch.None && before != reason:
		message = "The heartbeat is not renewed, so that other clusters demote this one: " + message
		klog.FromContext(ctx).Error(nil, message, "reason", string(reason))
		h.recorder.Event(lease, corev1.EventTypeWarning, EventHeartbeatStopped, message)
	case reason == vouch.None && before != vouch.None:
		klog.FromContext(ctx).Info("The heartbeat is renewed again")
		h.recorder.Event(lease, corev1.EventTypeNormal, EventHeartbeatResumed, "The EndpointSlices of this cluster are kept true again")
	}
	if reason == vouch.None {
		if before == vouch.Writes {
			for _, service := range h.record.Late() {
				h.retry(service)
			}
		}
		return 0
	}
	return member.HeartbeatInterval
}

// sleep returns after some time, or once the context ends.
func (h *heartbeat) sleep(ctx context.Context, long time.Duration) {
	timer := h.clock.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// run renews until the context ends, as long as the slices are kept true.
func (h *heartbeat) run(ctx context.Context) {
	failing := false
	select {
	case <-ctx.Done():
	case <-h.record.Seen():
	}
	if h.announced {
		// The others believe this id with its second heartbeat. The slices have
		// to arrive before it, over a watch of their own.
		h.sleep(ctx, member.HeartbeatInterval)
	}
	for ctx.Err() == nil {
		h.record.Beats()
		if wait := h.doubt(ctx); wait > 0 {
			h.sleep(ctx, wait)
			continue
		}
		next := member.HeartbeatInterval
		err := h.renew(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !failing {
				klog.FromContext(ctx).Error(err, "Cannot renew the heartbeat", "lease", klog.KRef(h.namespace, member.HeartbeatLease))
			}
			next = heartbeatRetry
		case failing:
			klog.FromContext(ctx).Info("Renewed the heartbeat again", "lease", klog.KRef(h.namespace, member.HeartbeatLease))
		}
		failing = err != nil
		h.sleep(ctx, next)
	}
}

// renew writes the Lease. Where somebody else wrote it meanwhile, what is
// there now is taken over.
func (h *heartbeat) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, member.HeartbeatInterval)
	defer cancel()
	if h.last == nil {
		existing, err := h.client.CoordinationV1().Leases(h.namespace).Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: member.HeartbeatLease}}
			h.stamp(lease)
			h.last, err = h.client.CoordinationV1().Leases(h.namespace).Create(ctx, lease, metav1.CreateOptions{})
			return err
		case err != nil:
			return err
		}
		h.last = existing
	}
	lease := h.last.DeepCopy()
	h.stamp(lease)
	updated, err := h.client.CoordinationV1().Leases(h.namespace).Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		h.last = nil
		return err
	}
	h.last = updated
	return nil
}

func (h *heartbeat) stamp(lease *coordinationv1.Lease) {
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, member.HeartbeatUIDAnnotation, h.kubeSystemUID)
	if h.version != "" {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, member.HeartbeatVersionAnnotation, h.version)
	}
	lease.Spec.HolderIdentity = &h.cluster
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(3 * member.HeartbeatInterval / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(h.clock.Now()))
}
