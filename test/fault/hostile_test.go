// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// hostile is what a member says that it must not, or cannot mean.
type hostile struct {
	name string
	// says changes an event of a slice of solo or lone.
	says func(event string) string
	// reason is that of the problem that is counted; empty for none.
	reason export.Reason
	// seen is what east has of solo and lone: kept where it is what it was
	// before, let in where it is what the others see.
	solo, lone string
	// unread tells that nothing of the member can be read any more.
	unread bool
}

// What becomes of a service that a member lies about.
const (
	soloKept, soloLetIn = "west/10.65.0.2 -> IP", "west/10.65.0.9 -> IP"
	loneKept, loneLetIn = "west/10.65.0.4 -> 10.65.0.4", "west/10.65.0.4 west/10.65.66.6 -> 10.65.0.4 10.65.66.6"
	// magic is the address that a hostile member says as another one.
	magic = "10.65.66.6"
)

// instead is a hostile address.
func instead(name, address string) hostile {
	return hostile{
		name: name, says: replacer(`"`+magic+`"`, `"`+address+`"`),
		reason: export.ReasonBadAddress, solo: soloLetIn, lone: loneKept,
	}
}

// replacer changes events of slices, where they have the text.
func replacer(from, to string) func(string) string {
	return func(event string) string { return strings.ReplaceAll(event, from, to) }
}

// ofSolo is replacer for the slices of solo.
func ofSolo(from, to string) func(string) string {
	return func(event string) string {
		if !strings.Contains(event, `"`+export.LabelService+`":"solo"`) {
			return event
		}
		return strings.ReplaceAll(event, from, to)
	}
}

// lied is a lie about solo.
func lied(name, from, to string, reason export.Reason, solo string) hostile {
	return hostile{name: name, says: ofSolo(from, to), reason: reason, solo: solo, lone: loneLetIn}
}

const snapshotKey = `"` + export.AnnotationSnapshotPrefix + `v1"`

// The snapshot is a text in an event, so that its quotes are escaped.
var lies = []hostile{
	instead("an unspecified address", "0.0.0.0"),
	instead("an address of this network", "0.1.2.3"),
	instead("a loopback address", "127.0.0.1"),
	instead("a link-local address", "169.254.1.1"),
	instead("the address of a metadata service", "169.254.169.254"),
	instead("the address of a cloud's platform", "168.63.129.16"),
	instead("a multicast address", "224.0.0.251"),
	instead("the broadcast address", "255.255.255.255"),
	instead("an address of another family", "2001:db8::1"),
	instead("an address in disguise", "::ffff:10.65.66.6"),
	instead("an address that is not canonical", "10.65.066.6"),
	instead("a name for an address", "metadata.internal"),
	{
		name: "a host name that is none", says: replacer(`"addresses":["`+magic+`"]`, `"addresses":["`+magic+`"],"hostname":"../evil\u0000.example"`),
		reason: export.ReasonBadEndpoint, solo: soloLetIn, lone: loneLetIn,
	},
	{
		name: "more endpoints than a slice can have",
		says: replacer(`"addresses":["`+magic+`"]`, strings.Repeat(`"addresses":["10.65.0.4"]},{`, 2000)+`"addresses":["10.65.0.4"]`),
		// All are the same: what counts is that they end.
		reason: export.ReasonTooLarge, solo: soloLetIn, lone: strings.Repeat("west/10.65.0.4 ", 1000) + "-> 10.65.0.4",
	},
	lied("a snapshot of an unknown version", snapshotKey, `"`+export.AnnotationSnapshotPrefix+`v99"`, export.ReasonUnknownVersion, soloKept),
	lied("no snapshot", snapshotKey, `"example.org/none"`, export.ReasonNoSnapshot, soloKept),
	lied("a snapshot that does not parse", `{\"cluster\"`, `{\"cluster`, export.ReasonBadSnapshot, soloKept),
	lied("a huge snapshot", `{\"cluster\"`, `{\"filler\":\"`+strings.Repeat("x", 300<<10)+`\",\"cluster\"`, export.ReasonTooLarge, soloKept),
	{
		// The watch ends there, and so does each list: what comes later has to
		// wait, and that is said.
		name: "a slice without measure", says: func(event string) string {
			if !strings.Contains(event, `"`+export.LabelService+`":"solo"`) {
				return event
			}
			return strings.Replace(event, `"annotations":{`, `"annotations":{"`+filler+`":"much",`, 1)
		},
		solo: soloKept, lone: loneKept, unread: true,
	},
	lied("a snapshot of another cluster", `\"cluster\":\"west\"`, `\"cluster\":\"north\"`, export.ReasonWrongCluster, soloKept),
	lied("a slice of another cluster", `"`+export.LabelSourceCluster+`":"west"`, `"`+export.LabelSourceCluster+`":"north"`, export.ReasonNotOurs, soloKept),
	lied("a slice of the reader's own", `"`+export.LabelSourceCluster+`":"west"`, `"`+export.LabelSourceCluster+`":"east"`, export.ReasonNotOurs, soloKept),
	lied("a type that there is not", `\"type\":\"ClusterSetIP\"`, `\"type\":\"Loopback\"`, export.ReasonBadSnapshot, soloKept),
	lied("a creation before time", `\"created\":\"2`, `\"created\":\"-2`, export.ReasonBadSnapshot, soloKept),
	lied("an address type that there is not", `"addressType":"IPv4"`, `"addressType":"FQDN"`, export.ReasonBadAddressType, soloKept),
	lied("a slice whose name is none", `\"slice\":{\"name\":\"`, `\"slice\":{\"name\":\"../../`, export.ReasonBadSnapshot, soloKept),
	lied("too many ports", `\"ports\":[`, `\"ports\":[`+strings.Repeat(`{\"protocol\":\"TCP\",\"port\":1},`, 101), export.ReasonBadSnapshot, soloKept),
	lied("the same port twice", `\"ports\":[`, `\"ports\":[{\"name\":\"http\",\"protocol\":\"TCP\",\"port\":80},`, export.ReasonBadSnapshot, soloLetIn),
	lied("a port that is none", `\"ports\":[`, `\"ports\":[{\"name\":\"evil\",\"protocol\":\"TCP\",\"port\":70000},`, export.ReasonBadSnapshot, soloLetIn),
	lied("a protocol that is none", `\"ports\":[`, `\"ports\":[{\"name\":\"evil\",\"protocol\":\"EVIL\",\"port\":81},`, export.ReasonBadSnapshot, soloLetIn),
	lied("a target that is none", `\"targets\":[`, `\"targets\":[{\"protocol\":\"TCP\",\"port\":80,\"target\":-1},`, export.ReasonBadSnapshot, soloLetIn),
	lied("endpoints that are demoted and not there", `\"slice\":{`, `\"slice\":{\"demoted\":[{\"endpoints\":[-1,7,2000000000]}],`, "", soloLetIn),
	lied("a label of Kubernetes' own", `\"service\":{`, `\"service\":{\"labels\":{\"kubernetes.io/evil\":\"yes\"},`, export.ReasonReservedKey, soloLetIn),
	lied("an affinity that is none", `\"sessionAffinity\":\"None\"`, `\"sessionAffinity\":\"Evil\"`, export.ReasonBadSnapshot, soloLetIn),
	{
		name: "a service whose name is none", says: ofSolo(`"`+export.LabelService+`":"solo"`, `"`+export.LabelService+`":"so_lo"`),
		reason: export.ReasonInvalidName, solo: gone, lone: loneLetIn,
	},
	{
		name: "a service in a namespace of the system", says: func(event string) string {
			if !strings.Contains(event, `"`+export.LabelService+`":"solo"`) {
				return event
			}
			_, rest, _ := strings.Cut(event, `"namespace":"`)
			namespace, _, _ := strings.Cut(rest, `"`)
			return strings.ReplaceAll(event, `"namespace":"`+namespace+`"`, `"namespace":"kube-system"`)
		},
		// For east, that is another slice.
		solo: soloKept, lone: loneLetIn,
	},
	{
		name: "a slice that nobody made", says: ofSolo(`"`+export.LabelSliceManagedBy+`"`, `"example.org/none"`),
		solo: gone, lone: loneLetIn,
	},
}

// TestHostileMember: what a member says harms nothing but its own exports, and
// is told of. Its API server and its controller are what they should be; what
// stands between them and east is not.
func TestHostileMember(t *testing.T) {
	b := newBed(t)
	b.fault("it says", func(b *bed) {
		g := b.gateway()
		for _, lie := range lies {
			b.sub(lie.name, func(b *bed) { lie.run(b, g) })
		}
	})
	b.fault("its events are broken", testBrokenEvents)
	b.fault("it is slow", testSlowMember)
	b.fault("its addresses are confined", testAddressesThatAMemberMayNotHave)
}

func (h hostile) run(b *bed, g *gateway) {
	if h.solo == gone {
		b.mayGo([]string{"solo"}, b.east)
	}
	defer func() {
		// The truth is believed, so that none of it is left for the next lie;
		// and what comes of it is what was before.
		g.says.Store(nil)
		if h.reason == "" {
			// No count tells that it was read.
			b.endpoints(b.west, "solo", "10.65.0.7")
			b.endpoints(b.west, "lone", "10.65.0.7")
			b.expect(healthy.with("solo", "west/10.65.0.7 -> IP").with("lone", "west/10.65.0.7 -> 10.65.0.7"))
		}
		b.endpoints(b.west, "solo", "10.65.0.2")
		b.endpoints(b.west, "lone", "10.65.0.4")
		b.expect(healthy)
		b.problem(b.east, "west", h.reason, 0)
	}()
	before := g.changed.Load()
	g.says.Store(&h.says)
	b.endpoints(b.west, "solo", "10.65.0.9")
	b.endpoints(b.west, "lone", "10.65.0.4", magic)
	b.everywhere(healthy.with("solo", soloLetIn).with("lone", loneLetIn), map[*cluster]view{
		b.east: healthy.with("solo", h.solo).with("lone", h.lone),
	})
	b.problem(b.east, "west", h.reason, 1)
	if h.unread {
		p := pair{b.east, b.west}
		b.eventually("no connection", func(context.Context) error { return p.is("clusterset_controller_member_connected", 0) })
		b.event(p, controller.EventMemberUnreachable, "one EndpointSlice is larger")
	}
	if g.changed.Load() == before {
		b.Error("nothing was said that is not true")
	}
	b.nothingElsewhere()
}

// problem waits until a cluster counts problems of another's exports.
func (b *bed) problem(c *cluster, of string, reason export.Reason, count float64) {
	b.Helper()
	if reason == "" {
		return
	}
	b.eventually("count of "+string(reason), func(context.Context) error {
		metric, err := c.metric("clusterset_controller_export_problems", map[string]string{"cluster": of, "reason": string(reason)})
		if err == nil && metric.GetGauge().GetValue() != count {
			err = fmt.Errorf("it is %v, not %v", metric, count)
		}
		return err
	})
}

// nothingElsewhere asserts that east has slices of exports in the namespaces of
// tests alone.
func (b *bed) nothingElsewhere() {
	b.Helper()
	list, err := b.east.DiscoveryV1().EndpointSlices("").List(b.Context(), metav1.ListOptions{LabelSelector: export.LabelService})
	b.must(err)
	for _, slice := range list.Items {
		if !strings.HasPrefix(slice.Namespace, "fault-") {
			b.Errorf("east has slice %s/%s", slice.Namespace, slice.Name)
		}
	}
}
