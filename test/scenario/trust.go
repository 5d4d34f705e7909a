// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// exportsLost: if a list lacks most exports of a member, the imports are kept until the exports are back or an
// administrator confirms the loss.
func exportsLost(s *Set, east, west, north *Cluster) {
	p := Pair{east, west}
	left := healthy.With("solo", gone, "db", "north/10.66.0.3 -> 10.66.0.3", "lone", gone)
	lose := func() {
		east.Stop()
		west.Withdraw("solo", "db", "lone")
		s.Expect(left, west, north)
		east.Start()
		s.Judged(p, "ExportsLost")
		s.Except(east, westDemoted, left)
	}
	lose()
	exportAll(west)
	s.Expect(healthy)

	lose()
	s.Holds(time.Minute, westDemoted, east)
	// The value to confirm is a time at the end of the message. The newest Event has the greatest one.
	_, token, _ := strings.Cut(east.ExpectEvent(s.secretOf(p), memberstate.EventMemberQuarantined), " of this Secret is ")
	s.Annotate(p, memberstate.AnnotationConfirm, token)
	s.Judged(p, "Alive")
	s.Expect(left)
}

// uid returns the UID of a cluster's namespace kube-system.
func (s *Set) uid(c *Cluster) string {
	namespace, err := c.Kube.CoreV1().Namespaces().Get(s.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	s.must(err)
	return string(namespace.UID)
}

// rebuilt: west is lost, and an empty API server gets its id. East and north get the new credential, and keep the old
// imports until an administrator confirms the change or enough time has passed.
func rebuilt(s *Set) {
	east, west, north, again := s.clusters[0], s.clusters[1], s.clusters[2], s.clusters[3]
	for _, c := range s.clusters {
		c.Stop()
	}
	// Before it was stopped, it may have sent a heartbeat with its former id.
	again.DeleteLease(member.HeartbeatLease)
	again.Options.Cluster = "west"
	for _, each := range s.Pairs() {
		if each.Reader == again || each.Source == again {
			s.Leave(each)
		}
	}
	for _, c := range []*Cluster{east, west, north} {
		exportAll(c)
		c.Start()
	}
	s.Expect(healthy, east, west, north)
	p, other := Pair{east, west}, Pair{north, west}
	s.cut(p, other)
	s.Expect(westDemoted, east, north)
	east.Restart() // the next leader knows which cluster west was
	again.Start()
	for _, each := range []Pair{p, other} {
		s.kubeconfig(each, again.platform.Credential(each.Reader.Name))
		s.Judged(each, "AnotherCluster")
	}
	again.Export("solo:10.65.9.2")
	s.Expect(View{"solo": "west/10.65.9.2 -> VIP"}, again)
	s.Annotate(p, memberstate.AnnotationConfirm, "something else")
	s.Holds(15*time.Second, westDemoted, east, north)
	s.Annotate(p, memberstate.AnnotationConfirm, s.uid(again))
	s.Judged(p, "Alive")
	after := westGone.With("solo", "west/10.65.9.2 -> VIP")
	s.Expect(after, east)
	s.Holds(time.Minute, westDemoted, north) // north's administrator did not confirm
	s.Judged(other, "Alive")
	s.Expect(after, north)
}

// editLease changes a Lease of a cluster.
func (s *Set) editLease(c *Cluster, name string, change func(*coordinationv1.Lease)) {
	s.Eventually("edit Lease "+name, func() error {
		leases := c.Kube.CoordinationV1().Leases(system)
		lease, err := leases.Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(lease)
		_, err = leases.Update(s.Context(), lease, metav1.UpdateOptions{})
		return err
	})
}

// leases: the Leases of a member and of the heartbeat are edited and deleted by hand. That ends with the next change of the member.
func leases(s *Set, east, west, north *Cluster) {
	p := Pair{east, west}
	name := memberstate.LeasePrefix + "west"
	s.LeaseSays(p, "fresh")
	s.editLease(east, name, func(lease *coordinationv1.Lease) {
		lease.Annotations = map[string]string{memberstate.StateAnnotation: "gone"}
		lease.Labels[member.ClusterLabel], lease.Spec.RenewTime = "north", nil
	})
	s.Annotate(p, memberstate.AnnotationDrain, "true")
	s.LeaseSays(p, "fresh")
	s.Becomes("label of the Lease", "west", func() (string, error) { return east.Lease(name).Labels[member.ClusterLabel], nil })
	s.Annotate(p, memberstate.AnnotationDrain, "")
	s.Expect(healthy)

	// Leases of other writers stay, say nothing about members, and do not prevent the Leases of other members.
	put := func(name, labels string) {
		east.Put(fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: %s, name: %s, labels: {%s}, annotations: {%s: another}}}",
			system, name, labels, member.HeartbeatUIDAnnotation))
	}
	east.Stop()
	east.DeleteLease(name)
	east.DeleteLease(memberstate.LeasePrefix + "north")
	put(name, member.ClusterLabel+": west")
	put("another", export.LabelManagedBy+": "+export.Manager)
	east.Start()
	s.Judged(p, "Alive")
	s.LeaseSays(Pair{east, north}, "fresh")
	s.Holds(10*time.Second, healthy)
	for _, each := range []string{name, "another"} {
		if lease := east.Lease(each); len(lease.Labels) != 1 || lease.Annotations[member.HeartbeatUIDAnnotation] != "another" {
			s.Errorf("the Lease %s of another writer became %v", each, lease)
		}
		east.DeleteLease(each)
	}
	east.Restart()
	s.LeaseSays(p, "fresh")

	s.editLease(west, member.HeartbeatLease, func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = new("thief") })
	s.Judged(p, "ClusterIDMismatch")
	s.Judged(p, "Alive")
	s.Expect(healthy)
	west.DeleteLease(member.HeartbeatLease)
	s.Holds(24*time.Second, healthy)
	s.Judged(p, "Alive")
}

// leaderLease: the leader Lease gets another holder. The leader stops, and leads again when the Lease is free.
func leaderLease(s *Set, east, west *Cluster) {
	west.Export("web:10.65.0.10")
	west.Options.LeaderElection, west.Options.Identity = true, "first"
	west.Restart()
	leads := func(want float64) { west.ExpectMetric(want, "clusterset_controller_leader") }
	leads(1)
	s.Expect(web(ofWest))
	s.editLease(west, controller.LeaderLease, func(lease *coordinationv1.Lease) {
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = new("thief"), new(int32(3600)), new(metav1.NowMicro())
	})
	leads(0)
	west.SetEndpoints("web", "10.65.0.11")
	s.Holds(10*time.Second, web(ofWest), east, west)
	west.DeleteLease(controller.LeaderLease)
	leads(1)
	s.Expect(web("west/10.65.0.11 -> VIP"))
}
