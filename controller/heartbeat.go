// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
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
	clock         clock.WithTicker

	last *coordinationv1.Lease // as last written
}

// run renews until the context ends.
func (h *heartbeat) run(ctx context.Context) {
	failing := false
	for {
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
		timer := h.clock.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
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
	lease.Spec.HolderIdentity = &h.cluster
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(3 * member.HeartbeatInterval / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(h.clock.Now()))
}
