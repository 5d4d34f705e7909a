// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// A lie is data that a member must not publish, or that is invalid.
type lie struct {
	name string
	// says changes a watch event for a slice of solo or lone.
	says func(event string) string
	// reason is the reason of the problem that is counted; empty for none.
	reason export.Reason
	// solo and lone are east's views of these services.
	solo, lone string
}

// The views of a service in a lie: unchanged, or as the other clusters see it.
const (
	soloKept, soloLetIn = "west/10.65.0.2 -> VIP", "west/10.65.0.9 -> VIP"
	loneKept, loneLetIn = "west/10.65.0.4 -> 10.65.0.4", "west/10.65.0.4 west/10.65.66.6 -> 10.65.0.4 10.65.66.6"
	// magic is an address that says replaces.
	magic = "10.65.66.6"
)

const (
	snapshotKey = `"` + export.AnnotationSnapshotPrefix + `v1"`
	soloLabel   = `"` + export.LabelService + `":"solo"`
	sourceWest  = `"` + export.LabelSourceCluster + `":"west"`
)

// instead replaces text.
func instead(from, to string) func(string) string {
	return func(event string) string { return strings.ReplaceAll(event, from, to) }
}

// ofSolo applies says only to slices of solo.
func ofSolo(says func(string) string) func(string) string {
	return func(event string) string {
		if !strings.Contains(event, soloLabel) {
			return event
		}
		return says(event)
	}
}

// untrue are lies of each kind: an invalid part, which is omitted from the import; an invalid snapshot, so that the
// service stays unchanged; and data about other clusters, which is ignored.
var untrue = []lie{
	{
		name: "an address in disguise", says: instead(`"`+magic+`"`, `"::ffff:`+magic+`"`),
		reason: export.ReasonBadAddress, solo: soloLetIn, lone: loneKept,
	},
	{
		name: "a snapshot of an unknown version", says: ofSolo(instead(snapshotKey, `"`+export.AnnotationSnapshotPrefix+`v99"`)),
		reason: export.ReasonBadSnapshot, solo: soloKept, lone: loneLetIn,
	},
	{
		name: "a slice of the reader's own", says: ofSolo(instead(sourceWest, strings.Replace(sourceWest, "west", "east", 1))),
		reason: export.ReasonBadSnapshot, solo: soloKept, lone: loneLetIn,
	},
	{
		name: "a service in a namespace of the system", says: ofSolo(func(event string) string {
			_, rest, _ := strings.Cut(event, `"namespace":"`)
			namespace, _, _ := strings.Cut(rest, `"`)
			return strings.ReplaceAll(event, `"namespace":"`+namespace+`"`, `"namespace":"kube-system"`)
		}),
		solo: soloKept, lone: loneLetIn, // in east, it is a slice of another service
	},
}

// lies: invalid data of a member affects only its own exports, and is reported. The member's API server and controller
// are healthy; a gateway between them and east changes the data.
func lies(s *Set, east, west, _ *Cluster) {
	g := s.gateway(Pair{east, west})
	for _, each := range untrue {
		s.Log("west says", each.name)
		each.run(s, g, east, west)
	}
}

func (l lie) run(s *Set, g *Gateway, east, west *Cluster) {
	s.Helper()
	before := g.changed.Load()
	g.says.Store(&l.says)
	west.SetEndpoints("solo", "10.65.0.9")
	west.SetEndpoints("lone", "10.65.0.4", magic)
	s.Except(east, healthy.With("solo", l.solo, "lone", l.lone), healthy.With("solo", soloLetIn, "lone", loneLetIn))
	east.problems("west", l.reason, 1)
	if g.changed.Load() == before {
		s.Error("nothing was said that is not true")
	}
	list, err := east.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).List(s.Context(),
		metav1.ListOptions{LabelSelector: export.LabelService})
	s.must(err)
	if len(list.Items) > 0 {
		s.Errorf("east has slice %s in the namespace of the system", list.Items[0].Name)
	}
	// Correct data is applied again, and no effect of the lie remains.
	g.says.Store(nil)
	west.SetEndpoints("solo", "10.65.0.2")
	west.SetEndpoints("lone", "10.65.0.4")
	s.Expect(healthy)
	east.problems("west", l.reason, 0)
}

// problems waits for the number of problems that the cluster counts in another cluster's exports.
func (c *Cluster) problems(of string, reason export.Reason, want float64) {
	if reason == "" {
		return
	}
	c.set.Becomes("problems of the reason "+string(reason), fmt.Sprint(want), func() (string, error) {
		got, _ := c.Metric("clusterset_controller_export_problems", "member", of, "reason", string(reason))
		return fmt.Sprint(got), nil
	})
}

// ownAddresses: addresses of nodes and of the API server of the local cluster are left out of imports, and the other
// endpoints of the service stay.
func ownAddresses(s *Set, east, west *Cluster) {
	west.Export("web:10.65.0.10,192.0.2.7,203.0.113.2")
	const all = "west/10.65.0.10 west/192.0.2.7 west/203.0.113.2 -> VIP"
	s.Expect(web(all))
	east.SetNode("one", "192.0.2.7", true)
	s.Except(east, web("west/10.65.0.10 west/203.0.113.2 -> VIP"), web(all))
	slices, other := east.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault), east.Slices("web")[0]
	other.ObjectMeta = metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{export.LabelKubernetesService: "kubernetes"}}
	other.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"203.0.113.2"}}}
	_, err := slices.Create(s.Context(), &other, metav1.CreateOptions{})
	s.must(err)
	s.Except(east, web(ofWest), web(all))
	s.must(slices.Delete(s.Context(), other.Name, metav1.DeleteOptions{}))
	s.Except(east, web("west/10.65.0.10 west/203.0.113.2 -> VIP"), web(all))
}

// confined: addresses outside of the CIDRs in a member's Secret are left out, and no others. Invalid CIDRs allow
// nothing.
func confined(s *Set, east, west, _ *Cluster) {
	p := Pair{east, west}
	s.Annotate(p, member.CIDRsAnnotation, "2001:db8::/32, 10.65.0.0/30")
	left := healthy.With("lone", "-> NXDOMAIN")
	s.Except(east, left, healthy)
	east.problems("west", export.ReasonForeignAddress, 1)
	s.Annotate(p, member.CIDRsAnnotation, ",")
	east.ExpectEvent(s.secretOf(p), memberstate.EventMemberCredentialInvalid)
	west.SetEndpoints("solo", "10.65.0.1")
	seen := healthy.With("solo", "west/10.65.0.1 -> VIP")
	s.Except(east, left.With("solo", seen["solo"]), seen)
	s.Annotate(p, member.CIDRsAnnotation, "10.65.0.0/16")
	s.Expect(seen)
}
