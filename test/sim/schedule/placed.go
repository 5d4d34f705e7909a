// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// placedName is a headless service that all clusters export: in every second schedule for some clusters, with a border and
// tiers. Its weights, what says that clusters are saturated, and its endpoints change (kind reweigh). Whatever happens, no
// endpoint is copied to a cluster that the exports are not for, and none outside of the border is used or answered. Once
// all is whole, those that are used must be those that tiers, weights and saturation have. The oracle follows the rules of
// docs/use/export-services.md, and shares no code with the controller.
const placedName = "placed"

// limits are what all exports of the service ask for in a schedule.
type limits struct {
	chosen, inside []string   // the clusters that they are for, and those within the border
	tiers          [][]string // nil for none
}

// newLimits draws them with random numbers of their own, for every second schedule.
func newLimits(s Schedule) limits {
	if s.Seed%2 > 0 {
		return limits{chosen: s.names(), inside: s.names()}
	}
	random := rand.New(rand.NewPCG(s.Seed, 4))
	some := func() []string {
		names := s.names()
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		return names[:1+random.IntN(len(names))]
	}
	l := limits{chosen: some(), inside: some()}
	for names := some(); len(l.tiers) < 3 && len(names) > 0; {
		n := 1 + random.IntN(len(names))
		l.tiers, names = append(l.tiers, names[:n]), names[n:]
	}
	return l
}

// admits tells whether a cluster may use the endpoints of another.
func (l limits) admits(reader, source string) bool {
	return reader == source || slices.Contains(l.inside, source) && slices.Contains(l.chosen, reader)
}

// tier is the place of a cluster in the order.
func (l limits) tier(cluster string) int {
	for i, tier := range l.tiers {
		if slices.Contains(tier, cluster) {
			return i
		}
	}
	return len(l.tiers)
}

// weighings are annotations, and what they say: percent by cluster.
var weighings = []struct {
	text string
	says map[string]int
}{
	{"", nil},
	{"c1=1", map[string]int{"c1": 1}},
	{"c1=10", map[string]int{"c1": 10}},
	{"c1=50", map[string]int{"c1": 50}},
	{"c2=75", map[string]int{"c2": 75}},
	{"c1=0", map[string]int{"c1": 0}},
	{"c2=100", map[string]int{"c2": 100}},
	{"c1=30, c2=20", map[string]int{"c1": 30, "c2": 20}},
	{"c1=70,c2=30", map[string]int{"c1": 70, "c2": 30}},
	{"c3=40, c1=0", map[string]int{"c1": 0, "c3": 40}},
	{"gone=60, c2=60", map[string]int{"c2": 60, "gone": 60}},
	{"c1=ten", nil},
}

// A placed is what the administrators of a cluster decided about the service, and have in the end.
type placed struct {
	weights   int // of weighings, the same in all clusters
	saturated bool
	endpoints []oracle.Endpoint
}

// ready is how many endpoints are.
func (p placed) ready() (count int) {
	for _, each := range p.endpoints {
		if each.Ready {
			count++
		}
	}
	return count
}

// reweigh changes the service.
func (c *cluster) reweigh(random *rand.Rand) {
	switch random.IntN(3) {
	case 0: // all exports are to say the same
		weights := random.IntN(len(weighings))
		c.r.note("weights %q", weighings[weights].text)
		for _, each := range c.r.clusters {
			each.placed.weights = weights
			each.writePlaced()
		}
		return
	case 1:
		c.placed.saturated = random.IntN(2) == 0
	default:
		c.placed.drawEndpoints(random, c.load.Number)
	}
	c.r.note("%s: %s is %+v", c.Name, placedName, c.placed)
	c.writePlaced()
}

// placedEndpoints is how many endpoints a cluster may have.
const placedEndpoints = 8

// placedAddress is one of them. Those of other services begin with 200.
func placedAddress(number, i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 91, byte(number), byte(i + 1)})
}

// drawEndpoints draws from few addresses, so that the same ones are used and left out again.
func (p *placed) drawEndpoints(random *rand.Rand, number int) {
	p.endpoints = nil
	ready := 1 + random.IntN(4)
	for i := range placedEndpoints {
		if random.IntN(3) > 0 {
			is := random.IntN(4) < ready
			p.endpoints = append(p.endpoints, oracle.Endpoint{
				Address: placedAddress(number, i), Node: fmt.Sprintf("p%d", i), Ready: is, Serving: is,
			})
		}
	}
}

// writePlaced has the cluster export the service.
func (c *cluster) writePlaced() {
	if c.away {
		return // it is written in the end
	}
	c.r.Changes++
	service := oracle.Service{
		Name: placedName, Present: true, Exported: true, Headless: true,
		Ports: []oracle.Port{{Name: "http", Number: 80, Protocol: "TCP"}}, Endpoints: c.placed.endpoints,
		Annotations: map[string]string{export.AnnotationWeights: weighings[c.placed.weights].text},
	}
	limits, annotations := c.r.limits, map[string]string{}
	if limits.tiers != nil {
		var tiers []string
		for _, tier := range limits.tiers {
			tiers = append(tiers, strings.Join(tier, "; "))
		}
		service.Annotations[export.AnnotationPrefer] = strings.Join(tiers, " > ")
		service.Annotations[export.AnnotationWithin] = strings.Join(limits.inside, "; ")
		annotations[export.AnnotationClusters] = strings.Join(limits.chosen, "; ")
	}
	maps.DeleteFunc(service.Annotations, func(_, text string) bool { return text == "" })
	if c.placed.saturated {
		annotations[export.AnnotationSaturated] = "true"
	}
	for _, each := range oracle.Writes(oracle.Service{Name: placedName}, service, sim.Namespace) {
		if exported, ok := each.Object.(*v1beta1.ServiceExport); ok {
			exported.SetAnnotations(annotations)
		}
		c.carryOut(each)
	}
}

// conditions returns the addresses of endpoints of a slice that are ready, and those that were demoted: no pod of the
// service terminates.
func conditions(slice *discoveryv1.EndpointSlice) (ready, demoted []string) {
	for _, each := range slice.Endpoints {
		switch {
		case *each.Conditions.Ready:
			ready = append(ready, each.Addresses[0])
		case each.Conditions.Terminating != nil && *each.Conditions.Terminating:
			demoted = append(demoted, each.Addresses[0])
		}
	}
	return ready, demoted
}
