// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

const (
	// MemberLeasePrefix begins the name of the Lease that shows the life of a
	// member in the controller's namespace; the id of the member follows.
	MemberLeasePrefix = "clusterset-dns-member-"
	// MemberStateAnnotation on such a Lease is the state of the member: fresh,
	// stale or gone.
	MemberStateAnnotation = "clusterset-dns.github.io/state"
	// leaseWriteTimeout bounds one write.
	leaseWriteTimeout = 5 * time.Second
)

// memberLeases writes one Lease for each member (KEP-1645, Endpoint TTL;
// docs/design/liveness.md). One goroutine runs it.
type memberLeases struct {
	client    kubernetes.Interface
	namespace string
	sentinel  *sentinel

	last    map[string]*coordinationv1.Lease // as last written, by member
	foreign map[string]bool                  // told to be errForeignLease, by member
}

// errForeignLease is of a Lease that stands where one of ours belongs.
var errForeignLease = errors.New("the Lease lacks the label " + export.LabelManagedBy + "=" + export.Manager + ": somebody else made it")

// load reads what a predecessor left. It waits for an API server that is away.
func (l *memberLeases) load(ctx context.Context) (map[string]memory, error) {
	l.last, l.foreign = map[string]*coordinationv1.Lease{}, map[string]bool{}
	left := map[string]memory{}
	err := wait.ExponentialBackoffWithContext(ctx, patient, func(ctx context.Context) (bool, error) {
		list, err := l.client.CoordinationV1().Leases(l.namespace).List(ctx, metav1.ListOptions{LabelSelector: member.ClusterLabel})
		if apierrors.IsForbidden(err) {
			return false, fmt.Errorf("leases of the members: %w", err)
		}
		if err != nil {
			return false, nil //nolint:nilerr // It is tried again until the context ends.
		}
		for i := range list.Items {
			lease := &list.Items[i]
			cluster := lease.Labels[member.ClusterLabel]
			if lease.Name != MemberLeasePrefix+cluster || lease.Labels[export.LabelManagedBy] != export.Manager {
				continue
			}
			l.last[cluster] = lease
			left[cluster] = memory{
				state: liveness.ParseState(lease.Annotations[MemberStateAnnotation]),
				uid:   lease.Annotations[member.HeartbeatUIDAnnotation],
			}
		}
		return true, nil
	})
	return left, err
}

// run writes what changed until the context ends.
func (l *memberLeases) run(ctx context.Context) {
	failing := false
	for {
		err := l.write(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			klog.FromContext(ctx).Error(err, "Cannot write the Lease of a member; trying again")
		}
		failing = err != nil
		if failing {
			timer := l.sentinel.clock.NewTimer(heartbeatRetry)
			select {
			case <-ctx.Done():
			case <-timer.C():
			}
			timer.Stop()
		} else {
			select {
			case <-ctx.Done():
			case <-l.sentinel.noted:
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// write brings the Leases up to date.
func (l *memberLeases) write(ctx context.Context) error {
	wanted := l.sentinel.leases()
	for cluster, lease := range l.last {
		if wanted[cluster] != nil {
			continue
		}
		err := l.limited(ctx, func(ctx context.Context) error {
			return l.client.CoordinationV1().Leases(l.namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		delete(l.last, cluster)
	}
	var failed []error
	for cluster, want := range wanted {
		is := l.last[cluster]
		if is != nil && !l.due(is, want) {
			continue
		}
		err := l.limited(ctx, func(ctx context.Context) (err error) {
			l.last[cluster], err = l.put(ctx, is, want)
			return err
		})
		foreign := errors.Is(err, errForeignLease)
		if foreign && !l.foreign[cluster] {
			klog.FromContext(ctx).Error(err, "Cannot show the state of a member: delete the Lease",
				"member", cluster, "lease", klog.KRef(l.namespace, want.Name))
		}
		if l.foreign[cluster] = foreign; foreign {
			err = nil // it is looked at again with the next heartbeat
		}
		if l.last[cluster] == nil || err != nil {
			delete(l.last, cluster) // and read it before the next try
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (l *memberLeases) limited(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, leaseWriteTimeout)
	defer cancel()
	return do(ctx)
}

// due tells whether a Lease is to be written: something else than the time
// changed, or the time by enough.
func (l *memberLeases) due(is, want *coordinationv1.Lease) bool {
	for _, key := range []string{MemberStateAnnotation, member.HeartbeatUIDAnnotation} {
		if is.Annotations[key] != want.Annotations[key] {
			return true
		}
	}
	if want.Spec.RenewTime == nil {
		return false
	}
	return is.Spec.RenewTime == nil || want.Spec.RenewTime.Sub(is.Spec.RenewTime.Time).Abs() >= l.sentinel.limits.StaleAfter/3
}

// put writes one Lease over what is there, unless somebody else made that.
func (l *memberLeases) put(ctx context.Context, is, want *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := l.client.CoordinationV1().Leases(l.namespace)
	if is == nil {
		found, err := leases.Get(ctx, want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return l.client.CoordinationV1().Leases(l.namespace).Create(ctx, want, metav1.CreateOptions{})
		case err != nil:
			return nil, err
		}
		if found.Labels[export.LabelManagedBy] != export.Manager {
			return nil, errForeignLease
		}
		is = found
	}
	updated := is.DeepCopy()
	updated.Labels, updated.Annotations = want.Labels, want.Annotations
	renewed := updated.Spec.RenewTime
	updated.Spec = want.Spec
	if updated.Spec.RenewTime == nil {
		updated.Spec.RenewTime = renewed
	}
	return l.client.CoordinationV1().Leases(l.namespace).Update(ctx, updated, metav1.UpdateOptions{})
}

// leases are those that should exist, by member.
func (s *sentinel) leases() map[string]*coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	leases := make(map[string]*coordinationv1.Lease, len(s.members))
	for cluster, w := range s.members {
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name:        MemberLeasePrefix + cluster,
				Labels:      map[string]string{member.ClusterLabel: cluster, export.LabelManagedBy: export.Manager},
				Annotations: map[string]string{MemberStateAnnotation: s.judgement.Of(cluster).State.String()},
			},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       ptr.To(cluster),
				LeaseDurationSeconds: ptr.To(int32(s.limits.StaleAfter / time.Second)),
			},
		}
		if w.KnownUID != "" {
			lease.Annotations[member.HeartbeatUIDAnnotation] = w.KnownUID
		}
		if heard := w.Arrivals.Last; !heard.IsZero() {
			lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(heard))
		}
		leases[cluster] = lease
	}
	return leases
}
