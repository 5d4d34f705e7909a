// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
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
	// --members-from has it, or "-" for Secrets with member.ClusterLabel, and then kind and name of the object.
	OriginAnnotation = "clusterset-dns.github.io/origin"
	// leasesEvery is the time between two lists of the Leases, and leaseTimeout bounds one request. A failed write is
	// retried with backoff, from leaseRetry to leaseRetryCap.
	leasesEvery   = time.Minute
	leaseTimeout  = 5 * time.Second
	leaseRetry    = time.Second
	leaseRetryCap = 10 * time.Second
	// allLeases stands for the list in the queue of the Tracker. It is the id of no cluster.
	allLeases = ""
)

// Leases writes one Lease for each member, which shows its state and has what the next leader is to know. Its renewTime
// is when the first heartbeat arrived with the present credential, for `kubectl clusterset join`, and that of an earlier
// one until then. One goroutine uses it.
type Leases struct {
	client    kubernetes.Interface
	namespace string
	tracker   *Tracker

	last map[string]*coordinationv1.Lease // as last written, by member
}

// errForeignLease is the error of a Lease that another writer made.
var errForeignLease = errors.New("delete it if nobody needs it: it lacks the label " + export.LabelManagedBy + "=" +
	export.Manager + ", so another writer made it")

// NewLeases returns the Leases that show the state of the tracker's members. It gives the tracker the state that the
// previous leader left, and retries until the API server answers or the context ends. It is to be called before the
// tracker has members.
func NewLeases(ctx context.Context, client kubernetes.Interface, namespace string, tracker *Tracker) (*Leases, error) {
	l := &Leases{client: client, namespace: namespace, tracker: tracker}
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := l.list(ctx)
		if apierrors.IsForbidden(err) {
			return false, fmt.Errorf("leases of the members: %w", err)
		}
		return err == nil, nil
	})
	tracker.left = map[string]memory{}
	for cluster, lease := range l.last {
		tracker.left[cluster] = lease.Annotations
	}
	return l, err
}

// Before returns the members, other than those of flags, when the previous leader ended, without credentials. It is to be
// called before Run.
func (l *Leases) Before() (before []*member.Candidate) {
	for _, lease := range l.last {
		if candidate := candidateOf(lease); candidate != nil {
			before = append(before, candidate)
		}
	}
	return before
}

// list reads the Leases, and has each compared with what it should be.
func (l *Leases) list(ctx context.Context) error {
	list, err := l.client.CoordinationV1().Leases(l.namespace).List(ctx,
		metav1.ListOptions{LabelSelector: member.ClusterLabel})
	if err != nil {
		return err
	}
	l.last = map[string]*coordinationv1.Lease{}
	for i := range list.Items {
		lease := &list.Items[i]
		cluster := lease.Labels[member.ClusterLabel]
		if lease.Name != LeasePrefix+cluster || lease.Labels[export.LabelManagedBy] != export.Manager {
			continue
		}
		l.last[cluster] = lease
		l.tracker.unshown.Add(cluster) // it may have left
	}
	l.tracker.mu.Lock()
	defer l.tracker.mu.Unlock()
	for cluster := range l.tracker.members {
		l.tracker.unshown.Add(cluster)
	}
	return nil
}

// Run writes the Leases that changed, until Tracker.ShutDown. Once a minute it also finds those that another writer
// changed. What the previous leader left of clusters that are no members ends.
func (l *Leases) Run(ctx context.Context) {
	l.tracker.mu.Lock()
	l.tracker.left = nil
	l.tracker.mu.Unlock()
	queue := l.tracker.unshown
	queue.AddAfter(allLeases, leasesEvery)
	for {
		cluster, ended := queue.Get()
		if ended {
			return
		}
		limited, cancel := context.WithTimeout(ctx, leaseTimeout)
		err := l.show(limited, cluster)
		cancel()
		if err == nil {
			queue.Forget(cluster)
		} else if queue.AddRateLimited(cluster); queue.NumRequeues(cluster) == 1 && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot write the Lease of a member; retrying", "lease",
				klog.KRef(l.namespace, LeasePrefix+cluster))
		}
		queue.Done(cluster)
	}
}

// show brings the Lease of a cluster up to date. After an error, whose outcome is not known, it is read first.
func (l *Leases) show(ctx context.Context, cluster string) error {
	if cluster == allLeases {
		defer l.tracker.unshown.AddAfter(allLeases, leasesEvery)
		return l.list(ctx)
	}
	leases := l.client.CoordinationV1()
	is, want := l.last[cluster], l.tracker.lease(cluster)
	switch {
	case want == nil && is == nil:
		return nil
	case want == nil:
		if err := leases.Leases(l.namespace).Delete(ctx, is.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		delete(l.last, cluster)
		return nil
	case is != nil && maps.Equal(is.Annotations, want.Annotations) &&
		(want.Spec.RenewTime == nil || want.Spec.RenewTime.Equal(is.Spec.RenewTime)):
		return nil
	}
	delete(l.last, cluster)
	if is == nil {
		found, err := leases.Leases(l.namespace).Get(ctx, want.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			found, err = leases.Leases(l.namespace).Create(ctx, want, metav1.CreateOptions{})
			if err == nil {
				l.last[cluster] = found
			}
			return err
		}
		if err != nil {
			return err
		}
		if found.Labels[export.LabelManagedBy] != export.Manager {
			return errForeignLease
		}
		is = found
	}
	updated := is.DeepCopy()
	updated.Labels, updated.Annotations = want.Labels, want.Annotations
	updated.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: want.Spec.HolderIdentity, RenewTime: cmp.Or(want.Spec.RenewTime, is.Spec.RenewTime),
	}
	updated, err := leases.Leases(l.namespace).Update(ctx, updated, metav1.UpdateOptions{})
	if err == nil {
		l.last[cluster] = updated
	}
	return err
}

// lease returns the desired Lease of a cluster, nil if it is no member.
func (t *Tracker) lease(cluster string) *coordinationv1.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.members[cluster]
	if m == nil {
		return nil
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:        LeasePrefix + cluster,
			Labels:      map[string]string{member.ClusterLabel: cluster, export.LabelManagedBy: export.Manager},
			Annotations: m.memory,
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(cluster)},
	}
	if !m.answered.IsZero() { // in the precision of the API
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(m.answered.Truncate(time.Microsecond)))
	}
	return lease
}

// A memory is what one leader leaves to the next about a member: the annotations of its Lease.
type memory map[string]string

// recall returns a member as the previous leader left it, or a new one. The caller holds the lock.
func (t *Tracker) recall(now time.Time, cluster string, left memory) *tracked {
	m := &tracked{
		verdict: liveness.NoMember(cluster), drains: left[DrainsAnnotation] == "true",
		description: describe(left[scope.PropertiesAnnotation]),
		Member: liveness.Member{
			Cluster:  cluster,
			Arrivals: liveness.Arrivals{Joined: now},
			Before:   liveness.ParseState(left[StateAnnotation]),
			KnownUID: left[member.HeartbeatUIDAnnotation],
		},
	}
	if t.Probing {
		m.Path = liveness.ParsePath(left[PathAnnotation])
	}
	return m
}

// remember has the Lease of a member written if it does not show what the next leader is to know. The caller holds the
// lock.
func (t *Tracker) remember(m *tracked) {
	is := memory{StateAnnotation: m.verdict.State.String()}
	drains := ""
	if m.drains {
		drains = "true"
	}
	for _, each := range [][2]string{
		{member.HeartbeatUIDAnnotation, m.KnownUID},
		{PathAnnotation, string(m.Path)},
		{DrainsAnnotation, drains},
		{scope.PropertiesAnnotation, m.accepted},
	} {
		if each[1] != "" {
			is[each[0]] = each[1]
		}
	}
	if m.source != nil {
		noteOrigin(is, m.source.Candidate())
	}
	if !maps.Equal(is, m.memory) {
		m.memory = is // the Lease shares it
		t.unshown.Add(m.Cluster)
	}
}
