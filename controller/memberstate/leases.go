// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/listwatch"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
)

const (
	// LeasePrefix begins the name of the Lease that shows the state of a member in the controller's namespace; the id
	// of the member follows.
	LeasePrefix = "clusterset-dns-member-"
	// StateAnnotation on such a Lease is the state of the member: fresh, stale or gone.
	StateAnnotation = "clusterset-dns.github.io/state"
	// PathAnnotation on such a Lease is the path to the pods of the member: reachable or unreachable. It is
	// missing while the path is unknown.
	PathAnnotation = "clusterset-dns.github.io/path"
	// DrainsAnnotation on such a Lease is "true" if the member asks in its heartbeat to be drained.
	DrainsAnnotation = "clusterset-dns.github.io/drains"
	// OriginAnnotation on such a Lease is what makes the cluster a member, unless a flag does: the source, as
	// --members-from has it, or "-" for Secrets with member.ClusterLabel, and then kind and name of the object or file.
	OriginAnnotation = "clusterset-dns.github.io/origin"
	// leaseWriteTimeout bounds one write, and leaseRetry is the time after which a failed write is retried.
	leaseWriteTimeout = 5 * time.Second
	leaseRetry        = time.Second
	// Of the Leases in which only the time of the last heartbeat changed, one is written each refreshEvery, after a look
	// at refreshLooks at most.
	refreshEvery = time.Second
	refreshLooks = 10
)

// Leases writes one Lease for each member (KEP-1645, Endpoint TTL). One goroutine uses it.
type Leases struct {
	client    kubernetes.Interface
	namespace string
	tracker   *Tracker

	last    map[string]*coordinationv1.Lease // as last written, by member
	foreign map[string]bool                  // reported as errForeignLease, by member
	pending map[string]struct{}              // members whose Leases may be out of date
	// turns are the members in the order in which refresh looks at them; inTurn are the same.
	turns  []string
	inTurn map[string]bool
}

// errForeignLease is the error of a Lease that another writer made.
var errForeignLease = errors.New(
	"the Lease lacks the label " + export.LabelManagedBy + "=" + export.Manager + ", so another writer made it")

// NewLeases returns the Leases that show the state of the tracker's members. It gives the tracker the state that the
// previous leader left, and retries until the API server answers or the context ends. It is to be called before the
// tracker has members.
func NewLeases(ctx context.Context, client kubernetes.Interface, namespace string, tracker *Tracker) (*Leases, error) {
	l := &Leases{client: client, namespace: namespace, tracker: tracker}
	var err error
	tracker.left, err = l.load(ctx)
	return l, err
}

// load reads what the previous leader left.
func (l *Leases) load(ctx context.Context) (map[string]state, error) {
	l.last, l.foreign = map[string]*coordinationv1.Lease{}, map[string]bool{}
	l.pending, l.inTurn = map[string]struct{}{}, map[string]bool{}
	left := map[string]state{}
	err := listwatch.Retry(ctx, func(ctx context.Context) (bool, error) {
		leases := l.client.CoordinationV1().Leases(l.namespace)
		list, err := leases.List(ctx, metav1.ListOptions{LabelSelector: member.ClusterLabel})
		if apierrors.IsForbidden(err) {
			return false, fmt.Errorf("leases of the members: %w", err)
		}
		if err != nil {
			return false, nil //nolint:nilerr // Retry until the context ends.
		}
		for i := range list.Items {
			lease := &list.Items[i]
			cluster := lease.Labels[member.ClusterLabel]
			if lease.Name != LeasePrefix+cluster || lease.Labels[export.LabelManagedBy] != export.Manager {
				continue
			}
			l.last[cluster] = lease
			l.pending[cluster] = struct{}{} // it may have left
			left[cluster] = state{
				state: liveness.ParseState(lease.Annotations[StateAnnotation]),
				uid:   lease.Annotations[member.HeartbeatUIDAnnotation],
				path:  liveness.ParsePath(lease.Annotations[PathAnnotation]), drains: lease.Annotations[DrainsAnnotation] == "true",
				description: member.Description{
					Properties: lease.Annotations[properties.Annotation],
					Accepts:    lease.Annotations[accept.PublishedAnnotation],
				},
			}
			if candidate := candidateOf(lease); candidate != nil {
				l.tracker.before = append(l.tracker.before, candidate)
			}
		}
		return true, nil
	})
	return left, err
}

// Run writes the Leases that changed, until the context ends.
func (l *Leases) Run(ctx context.Context) {
	ticker := l.tracker.clock.NewTicker(refreshEvery)
	defer ticker.Stop()
	failing, refresh := false, false
	for {
		err := l.write(ctx)
		if refresh && err == nil {
			err = l.refresh(ctx)
		}
		if err != nil && ctx.Err() == nil && !failing {
			klog.FromContext(ctx).Error(err, "Cannot write the Lease of a member; retrying")
		}
		failing, refresh = err != nil, false
		if failing {
			timer := l.tracker.clock.NewTimer(leaseRetry)
			select {
			case <-ctx.Done():
			case <-timer.C():
			}
			timer.Stop()
		} else {
			select {
			case <-ctx.Done():
			case <-l.tracker.shown:
			case <-ticker.C():
				refresh = true
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// write brings the Leases of the members whose state changed up to date.
func (l *Leases) write(ctx context.Context) error {
	l.tracker.takeUnshown(l.pending)
	var failed []error
	for cluster := range l.pending {
		if _, err := l.show(ctx, cluster); err != nil {
			failed = append(failed, err)
			continue
		}
		delete(l.pending, cluster)
	}
	return errors.Join(failed...)
}

// refresh writes the time of the last heartbeat of one member, if that of any of the next ones changed by enough.
func (l *Leases) refresh(ctx context.Context) error {
	for range min(len(l.turns), refreshLooks) {
		cluster := l.turns[0]
		l.turns = l.turns[1:]
		if !l.tracker.has(cluster) {
			delete(l.inTurn, cluster)
			continue
		}
		l.turns = append(l.turns, cluster)
		asked, err := l.show(ctx, cluster)
		if err != nil {
			l.pending[cluster] = struct{}{}
		}
		if asked {
			return err
		}
	}
	return nil
}

// show brings the Lease of a cluster up to date, and reports whether the API server was asked.
func (l *Leases) show(ctx context.Context, cluster string) (asked bool, err error) {
	is, want := l.last[cluster], l.tracker.lease(cluster)
	switch {
	case want == nil && is == nil:
		return false, nil
	case want == nil:
		err := l.limited(ctx, func(ctx context.Context) error {
			return l.client.CoordinationV1().Leases(l.namespace).Delete(ctx, is.Name, metav1.DeleteOptions{})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return true, err
		}
		delete(l.last, cluster)
		return true, nil
	case !l.inTurn[cluster]:
		l.inTurn[cluster] = true
		l.turns = append(l.turns, cluster)
	}
	if is != nil && !l.due(is, want) {
		return false, nil
	}
	err = l.limited(ctx, func(ctx context.Context) (err error) {
		l.last[cluster], err = l.put(ctx, is, want)
		return err
	})
	foreign := errors.Is(err, errForeignLease)
	if foreign && !l.foreign[cluster] {
		klog.FromContext(ctx).Error(err, "Cannot show the state of a member: delete the Lease",
			"member", cluster, "lease", klog.KRef(l.namespace, want.Name))
	}
	if l.foreign[cluster] = foreign; foreign {
		err = nil // it is read again in its turn
	}
	if l.last[cluster] == nil || err != nil {
		delete(l.last, cluster) // it is read before the next write
	}
	return true, err
}

func (l *Leases) limited(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, leaseWriteTimeout)
	defer cancel()
	return do(ctx)
}

// due reports whether a Lease is to be written: the state, the UID or the description changed, or the time changed by a third of
// stale-after.
func (l *Leases) due(is, want *coordinationv1.Lease) bool {
	for _, key := range append([]string{
		StateAnnotation, PathAnnotation, member.HeartbeatUIDAnnotation, properties.Annotation, accept.PublishedAnnotation,
		OriginAnnotation, DrainsAnnotation,
	}, remembered...) {
		if is.Annotations[key] != want.Annotations[key] {
			return true
		}
	}
	if want.Spec.RenewTime == nil {
		return false
	}
	return is.Spec.RenewTime == nil || want.Spec.RenewTime.Sub(
		is.Spec.RenewTime.Time).Abs() >= l.tracker.limits.StaleAfter/3
}

// put creates or updates one Lease, unless another writer made it.
func (l *Leases) put(ctx context.Context, is, want *coordinationv1.Lease) (*coordinationv1.Lease, error) {
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

// takeUnshown adds the members whose Leases do not show their state to a set, and forgets them.
func (t *Tracker) takeUnshown(to map[string]struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.Copy(to, t.unshown)
	clear(t.unshown)
}

// has reports whether a cluster is a member.
func (t *Tracker) has(cluster string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.members[cluster] != nil
}

// lease returns the desired Lease of a cluster, nil if it is no member.
func (t *Tracker) lease(cluster string) *coordinationv1.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.members[cluster]
	if m == nil {
		return nil
	}
	// Twice the time in which each has its turn, if that is longer than a member may be silent.
	lasts := max(t.limits.StaleAfter, time.Duration(2*len(t.members))*refreshEvery)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:        LeasePrefix + cluster,
			Labels:      map[string]string{member.ClusterLabel: cluster, export.LabelManagedBy: export.Manager},
			Annotations: map[string]string{StateAnnotation: t.verdict(cluster).State.String()},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(cluster),
			LeaseDurationSeconds: ptr.To(int32(lasts / time.Second)),
		},
	}
	if m.KnownUID != "" {
		lease.Annotations[member.HeartbeatUIDAnnotation] = m.KnownUID
	}
	if m.Path != liveness.PathUnknown {
		lease.Annotations[PathAnnotation] = m.Path.String()
	}
	if m.drains {
		lease.Annotations[DrainsAnnotation] = "true"
	}
	if m.accepted.Properties != "" {
		lease.Annotations[properties.Annotation] = m.accepted.Properties
	}
	if m.accepted.Accepts != "" {
		lease.Annotations[accept.PublishedAnnotation] = m.accepted.Accepts
	}
	if m.source != nil {
		noteOrigin(lease, m.source.Candidate())
	}
	if heard := m.Arrivals.Last; !heard.IsZero() {
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(heard))
	}
	return lease
}
