// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
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
	// empty while the path is unknown.
	PathAnnotation = "clusterset-dns.github.io/path"
	// DrainsAnnotation on such a Lease is "true" if the member asks in its heartbeat to be drained.
	DrainsAnnotation = "clusterset-dns.github.io/drains"
	// OriginAnnotation on such a Lease names the object that makes the cluster a member: the source, as in --members-from, or
	// "-" for Secrets with member.ClusterLabel, and then kind and name.
	OriginAnnotation = "clusterset-dns.github.io/origin"
	// leasesEvery is the time between two comparisons of the Leases with the members. leasesTimeout bounds what is written in
	// between.
	leasesEvery   = time.Second
	leasesTimeout = 10 * time.Second
)

// remembered are the annotations of a member that stay in force while its source cannot be read after a restart.
var remembered = []string{member.CIDRsAnnotation, member.RankAnnotation, scope.AcceptAnnotation, AnnotationDrain}

// A lease has the parts of a member's Lease that change. It is immutable.
type lease struct {
	annotations map[string]string
	renewTime   *metav1.MicroTime
}

// Recall lists the Leases, so that each member begins in the state that the previous leader recorded, and makes Run write them.
// It returns the members of the previous leader, without credentials. It retries until the API server answers or the context
// ends. Call it before there are members.
func (t *Tracker) Recall(ctx context.Context, client coordinationclient.LeasesGetter, namespace string,
) (before []*member.Candidate, err error) {
	t.leases, t.namespace = client.Leases(namespace), namespace
	var list *coordinationv1.LeaseList
	err = local.Await(ctx, "the Leases of the members", func(ctx context.Context) (_ bool, err error) {
		list, err = t.leases.List(ctx, metav1.ListOptions{})
		return err == nil || apierrors.IsForbidden(err), err
	})
	if err != nil {
		return nil, fmt.Errorf("leases of the members: %w", err)
	}
	for i := range list.Items {
		is := &list.Items[i]
		cluster, named := strings.CutPrefix(is.Name, LeasePrefix)
		switch {
		case !named:
		case is.Labels[export.LabelManagedBy] != export.Manager:
			t.foreign[cluster] = true
			klog.FromContext(ctx).Info("Another writer made the Lease of a member, whose state is not recorded: delete the Lease, and restart",
				"lease", klog.KObj(is))
		default:
			t.left[cluster], t.applied[cluster] = is, nil
			before = append(before, candidateOf(cluster, is.Annotations))
		}
	}
	return before, nil
}

// candidateOf returns the candidate that the previous leader recorded, without its credential. If OriginAnnotation is invalid,
// it equals none of the current candidates.
func candidateOf(cluster string, left map[string]string) *member.Candidate {
	c := &member.Candidate{
		Cluster: cluster, Annotations: left,
		Err: errors.New("its credential is not known: --members-from has not named it since the controller started"),
	}
	_, _ = fmt.Sscan(left[OriginAnnotation], &c.Source, &c.Kind, &c.Name)
	c.Source = strings.TrimPrefix(c.Source, "-")
	return c
}

// keepLeases applies the Leases that changed, and deletes those of clusters that are no longer members, until the context ends.
func (t *Tracker) keepLeases(ctx context.Context) {
	t.change(func(time.Time) { clear(t.left) })
	for failing := false; ; {
		err := t.writeLeases(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot write the Leases of the members; retrying")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-t.clock.After(leasesEvery):
		}
	}
}

// writeLeases writes each Lease that is not as last applied, and another one in each heartbeat interval, in turns: somebody may
// have changed it, or restored the API server from a backup. It writes none that another writer made before the start. It ends
// with the first error, and the next call goes on in another order.
func (t *Tracker) writeLeases(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leasesTimeout)
	defer cancel()
	want, again := t.wanted(), ""
	if len(t.repeat) == 0 {
		t.repeat = slices.Collect(maps.Keys(want))
	}
	if now := t.clock.Now(); len(t.repeat) > 0 && now.Sub(t.repeated) >= liveness.HeartbeatInterval {
		again, t.repeat, t.repeated = t.repeat[0], t.repeat[1:], now
	}
	for cluster, is := range want {
		was := t.applied[cluster]
		unchanged := was != nil && was.renewTime == is.renewTime && maps.Equal(was.annotations, is.annotations)
		if t.foreign[cluster] || unchanged && cluster != again {
			continue
		}
		t.applied[cluster] = nil // whether it is written is not known until the API server answers
		spec := applycoordinationv1.LeaseSpec().WithHolderIdentity(cluster)
		spec.RenewTime = is.renewTime
		object := applycoordinationv1.Lease(LeasePrefix+cluster, t.namespace).WithAnnotations(is.annotations).WithSpec(spec).
			WithLabels(map[string]string{member.ClusterLabel: cluster, export.LabelManagedBy: export.Manager})
		if _, err := t.leases.Apply(ctx, object, metav1.ApplyOptions{FieldManager: export.Manager, Force: true}); err != nil {
			return err
		}
		t.applied[cluster] = is
	}
	for cluster := range t.applied {
		if want[cluster] != nil {
			continue
		}
		if err := t.leases.Delete(ctx, LeasePrefix+cluster, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		delete(t.applied, cluster)
	}
	return nil
}

// wanted returns the Leases of the members as they should be.
func (t *Tracker) wanted() map[string]*lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	leases := map[string]*lease{}
	for cluster, m := range t.members {
		leases[cluster] = &lease{m.memory(), m.renewTime}
	}
	return leases
}

// recall returns a member in the state that the previous leader recorded, or a new member. The caller holds the lock.
func (t *Tracker) recall(now time.Time, cluster string) *Member {
	is := t.left[cluster]
	if is == nil {
		is = &coordinationv1.Lease{}
	}
	delete(t.left, cluster) // a member that leaves and joins again is new
	left := is.Annotations
	m := &Member{
		Verdict: liveness.NoMember(cluster),
		Heartbeat: member.Heartbeat{
			Drained: left[DrainsAnnotation] == "true", Properties: left[scope.PropertiesAnnotation],
		},
		renewTime: is.Spec.RenewTime,
		invalid:   map[string]string{},
		Member: liveness.Member{
			Cluster:  cluster,
			Arrivals: liveness.Arrivals{Steady: now},
			Before:   liveness.ParseState(left[StateAnnotation]),
			KnownUID: left[member.HeartbeatUIDAnnotation],
		},
	}
	m.accepted = m.Heartbeat.Properties
	m.properties, _ = scope.ParseProperties(m.accepted) // invalid only if another writer changed the Lease
	m.set = m.properties[scope.ClusterSetProperty]
	if t.DecodeTargets != nil {
		m.Path = liveness.Path(left[PathAnnotation])
	}
	return m
}

// memory returns what one leader leaves to the next about a member: its state, its origin, by which the next leader prefers it to
// another candidate with the same id, and its remembered annotations. The caller holds the lock.
func (m *Member) memory() map[string]string {
	candidate := m.member.Candidate()
	is := map[string]string{
		StateAnnotation:               m.Verdict.State.String(),
		member.HeartbeatUIDAnnotation: m.KnownUID,
		PathAnnotation:                string(m.Path),
		DrainsAnnotation:              map[bool]string{true: "true"}[m.Heartbeat.Drained],
		scope.PropertiesAnnotation:    m.accepted,
		OriginAnnotation:              cmp.Or(candidate.Source, "-") + " " + candidate.String(),
	}
	for key, value := range candidate.Annotations {
		if slices.Contains(remembered, key) {
			is[key] = value
		}
	}
	return is
}
