// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
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
	// OriginAnnotation on such a Lease names the object that makes the cluster a member: the source, as in --members-from, or
	// "-" for Secrets with member.ClusterLabel, and then kind and name.
	OriginAnnotation = "clusterset-dns.github.io/origin"
	// leasesEvery is the time between two comparisons of the Leases with the members, and leasesRetry the time after a failure.
	// After leasesListed, the Leases are listed again anyway. leaseTimeout bounds one request.
	leasesEvery  = time.Second
	leasesRetry  = 5 * time.Second
	leasesListed = time.Minute
	leaseTimeout = 5 * time.Second
)

// Recall lists the Leases, so that each member begins in the state that the previous leader recorded, and makes Run write them.
// It returns the members of the previous leader, without credentials. It retries until the API server answers or the context
// ends. Call it before there are members.
func (t *Tracker) Recall(ctx context.Context, client coordinationclient.LeasesGetter, namespace string,
) (before []*member.Candidate, err error) {
	t.client, t.namespace = client, namespace
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := t.list(ctx)
		if apierrors.IsForbidden(err) {
			return false, fmt.Errorf("leases of the members: %w", err)
		}
		return err == nil, nil
	})
	t.left = map[string]memory{}
	for cluster, lease := range t.shown {
		t.left[cluster] = lease.Annotations
		before = append(before, candidateOf(cluster, lease.Annotations))
	}
	return before, err
}

// list lists the Leases, without what other writers added.
func (t *Tracker) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	list, err := t.client.Leases(t.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	t.shown, t.listed = map[string]*coordinationv1.Lease{}, t.clock.Now()
	for i := range list.Items {
		lease := &list.Items[i]
		cluster, named := strings.CutPrefix(lease.Name, LeasePrefix)
		if named && lease.Labels[export.LabelManagedBy] == export.Manager {
			maps.DeleteFunc(lease.Labels, foreign)
			maps.DeleteFunc(lease.Annotations, foreign)
			t.shown[cluster] = lease
		}
	}
	return nil
}

// foreign reports whether a label or annotation of a Lease is of another writer.
func foreign(key, _ string) bool {
	return !strings.HasPrefix(key, export.Domain+"/") && key != export.LabelManagedBy
}

// keepLeases keeps the Leases up to date until the context ends. It deletes the Leases of clusters that are no longer members,
// and corrects changes of other writers within a minute.
func (t *Tracker) keepLeases(ctx context.Context) {
	t.change(func(time.Time) { t.left = nil })
	for failing := false; ; {
		err, next := t.writeLeases(ctx), leasesEvery
		if err != nil && !failing && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot write the Leases of the members; retrying", "namespace", t.namespace)
		}
		if failing = err != nil; failing {
			next = leasesRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-t.clock.After(next):
		}
	}
}

// writeLeases lists the Leases if one may not be as it should, and writes each Lease that is not.
func (t *Tracker) writeLeases(ctx context.Context) error {
	want := t.leases()
	if t.clock.Since(t.listed) < leasesListed && maps.EqualFunc(t.shown, want, shows) {
		return nil
	}
	if err := t.list(ctx); err != nil {
		return err
	}
	var errs []error
	for cluster, lease := range want {
		if is := t.shown[cluster]; is == nil || !shows(is, lease) {
			errs = append(errs, t.show(ctx, is, lease))
		}
	}
	for cluster, is := range t.shown {
		if want[cluster] == nil {
			errs = append(errs, t.show(ctx, is, nil))
		}
	}
	return errors.Join(errs...)
}

// show creates, updates or deletes a Lease; nil means none. The next writeLeases lists the Leases to see the result.
func (t *Tracker) show(ctx context.Context, is, want *coordinationv1.Lease) (err error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	t.listed = time.Time{}
	switch {
	case want == nil:
		want, err = is, t.client.Leases(t.namespace).Delete(ctx, is.Name, metav1.DeleteOptions{})
	case is == nil:
		_, err = t.client.Leases(t.namespace).Create(ctx, want, metav1.CreateOptions{}) // one that exists is of another writer
	default:
		want.Spec.RenewTime = cmp.Or(want.Spec.RenewTime, is.Spec.RenewTime)
		updated := is.DeepCopy()
		updated.Labels, updated.Annotations, updated.Spec = want.Labels, want.Annotations, want.Spec
		_, err = t.client.Leases(t.namespace).Update(ctx, updated, metav1.UpdateOptions{})
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", want.Name, err)
	}
	return err
}

// shows reports whether a Lease is as it should be. Labels and annotations of others stay until the next change.
func shows(is, want *coordinationv1.Lease) bool {
	return maps.Equal(is.Labels, want.Labels) && maps.Equal(is.Annotations, want.Annotations) &&
		(want.Spec.RenewTime == nil || want.Spec.RenewTime.Equal(is.Spec.RenewTime))
}

// leases returns the Leases of the members as they should be.
func (t *Tracker) leases() map[string]*coordinationv1.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	leases := map[string]*coordinationv1.Lease{}
	for cluster, m := range t.members {
		leases[cluster] = &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name:        LeasePrefix + cluster,
				Labels:      map[string]string{member.ClusterLabel: cluster, export.LabelManagedBy: export.Manager},
				Annotations: m.memory(),
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &m.Cluster},
		}
		if !m.answered.IsZero() { // in the precision of the API
			leases[cluster].Spec.RenewTime = ptr.To(metav1.NewMicroTime(m.answered.Truncate(time.Microsecond)))
		}
	}
	return leases
}

// A memory is what one leader leaves to the next about a member: the annotations of its Lease.
type memory map[string]string

// recall returns a member in the state that the previous leader recorded, or a new member. The caller holds the lock.
func (t *Tracker) recall(now time.Time, cluster string, left memory) *Member {
	m := &Member{
		Verdict: liveness.NoMember(cluster),
		Heartbeat: member.Heartbeat{
			Drained: left[DrainsAnnotation] == "true", Properties: left[scope.PropertiesAnnotation],
		},
		description: describe(left[scope.PropertiesAnnotation]),
		Member: liveness.Member{
			Cluster:  cluster,
			Arrivals: liveness.Arrivals{Steady: now},
			Before:   liveness.ParseState(left[StateAnnotation]),
			KnownUID: left[member.HeartbeatUIDAnnotation],
		},
	}
	if t.DecodeTargets != nil {
		m.Path = liveness.Path(left[PathAnnotation])
	}
	return m
}

// memory returns the facts that the next leader needs. The caller holds the lock.
func (m *Member) memory() memory {
	is := memory{
		StateAnnotation:               m.Verdict.State.String(),
		member.HeartbeatUIDAnnotation: m.KnownUID,
		PathAnnotation:                string(m.Path),
		DrainsAnnotation:              map[bool]string{true: "true"}[m.Heartbeat.Drained],
		scope.PropertiesAnnotation:    m.accepted,
	}
	maps.DeleteFunc(is, func(_, value string) bool { return value == "" })
	noteOrigin(is, m.source.Candidate())
	return is
}
