// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// placedName is a headless service that all clusters export, in every second schedule for some clusters only, with
// allowed clusters and tiers. Its weights, which clusters are overloaded, and its endpoints change (kind reweigh). No
// endpoint is ever copied to a cluster for which the exports are not, no endpoint outside of the allowed clusters is used
// or answered, and all clusters use endpoints in the same order. Which ones they use is tested by a scenario (SRV answers
// have an order and weights), and by TestOrder and TestShares of controller/placement.
const placedName = "placed"

// limits are the settings that all exports of the service have in a schedule.
type limits struct {
	chosen, inside []string   // the clusters that may import it, and the allowed clusters
	tiers          [][]string // nil for none
}

// newLimits draws the limits from its own random numbers, for every second schedule.
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

// admits reports whether a cluster may use the endpoints of another.
func (l limits) admits(reader, source string) bool {
	return reader == source || slices.Contains(l.inside, source) && slices.Contains(l.chosen, reader)
}

// weighings are values of the annotation.
var weighings = []string{
	"", "c1=1", "c1=10", "c1=50", "c2=75", "c1=0", "c2=100", "c1=30, c2=20", "c1=70,c2=30", "c3=40, c1=0", "gone=60, c2=60", "c1=ten",
}

// A placed is the configuration of the service in a cluster.
type placed struct {
	weights    string // the same in all clusters
	overloaded bool
	endpoints  []oracle.Endpoint
}

// reweigh changes the service at random.
func (c *cluster) reweigh(random *rand.Rand) {
	switch random.IntN(3) {
	case 0: // all exports must have the same weights
		weights := weighings[random.IntN(len(weighings))]
		c.r.note("weights %q", weights)
		for _, each := range c.r.clusters {
			each.placed.weights = weights
			each.writePlaced()
		}
		return
	case 1:
		c.placed.overloaded = random.IntN(2) == 0
	default:
		c.placed.drawEndpoints(random, c.load.Number)
	}
	c.r.note("%s: %s is %+v", c.Name, placedName, c.placed)
	c.writePlaced()
}

// placedEndpoints is the most endpoints of a cluster.
const placedEndpoints = 8

// placedAddress returns the address of an endpoint. It differs from those of other services.
func placedAddress(number, i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 91, byte(number), byte(i + 1)})
}

// drawEndpoints draws from few addresses, so that addresses are reused.
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

// writePlaced writes the service and its export.
func (c *cluster) writePlaced() {
	if c.away {
		return // settle writes it
	}
	c.r.Changes++
	service := oracle.Service{
		Name: placedName, Present: true, Exported: true, Headless: true,
		Ports: []oracle.Port{{Name: "http", Number: 80, Protocol: "TCP"}}, Endpoints: c.placed.endpoints,
		Annotations: map[string]string{export.AnnotationWeights: c.placed.weights},
	}
	limits, annotations := c.r.limits, map[string]string{}
	if limits.tiers != nil {
		var tiers []string
		for _, tier := range limits.tiers {
			tiers = append(tiers, strings.Join(tier, "; "))
		}
		service.Annotations[export.AnnotationPrefer] = strings.Join(tiers, " > ")
		service.Annotations[export.AnnotationAllowedClusters] = strings.Join(limits.inside, "; ")
		annotations[export.AnnotationClusters] = strings.Join(limits.chosen, "; ")
	}
	maps.DeleteFunc(service.Annotations, func(_, text string) bool { return text == "" })
	if c.placed.overloaded {
		annotations[export.AnnotationOverloaded] = "true"
	}
	for _, each := range oracle.Writes(oracle.Service{Name: placedName}, service, sim.Namespace) {
		if exported, ok := each.Object.(*v1beta1.ServiceExport); ok {
			exported.SetAnnotations(annotations)
		}
		c.carryOut(each)
	}
}

// conditions returns the addresses of the ready endpoints of a slice, and of the demoted ones: no pod of the service
// terminates, so a terminating endpoint was demoted.
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

// seePlaced checks each state of a slice: it has no endpoint that is not for the cluster, uses none outside of the
// allowed clusters, and uses endpoints in an order that is the same in all clusters and at all times.
func (c *cluster) seePlaced(slice *discoveryv1.EndpointSlice, deleted bool) {
	c.shown = time.Now()
	from := slice.Labels[v1beta1.LabelSourceCluster]
	if deleted || from == "" {
		return
	}
	if limits := c.r.limits; !limits.admits(c.Name, from) {
		if !slices.Contains(limits.chosen, c.Name) && len(slice.Endpoints) > 0 ||
			slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return *e.Conditions.Ready || *e.Conditions.Serving }) {
			c.r.find("%s: a slice in %s has endpoints of %s: %+v", time.Now().Format(time.TimeOnly), c.Name, from, limits)
		}
	}
	ready, demoted := conditions(slice)
	for _, one := range ready {
		for _, other := range demoted {
			if where, wrong := c.r.used[[2]string{other, one}]; wrong {
				c.r.find("%s: a slice in %s uses %s before %s, which was used before it in %s",
					time.Now().Format(time.TimeOnly), c.Name, one, other, where)
			}
			c.r.used[[2]string{one, other}] = c.Name
		}
	}
}

// publishes is longer than the pause of DNS between two answers for a service that changes constantly.
const publishes = 200 * time.Millisecond

// askPlaced asserts that a cluster answers nothing from outside of the allowed clusters. If the cluster can write, its
// answers must be endpoints in use, and at least one must be in use if there is any.
func (c *cluster) askPlaced() {
	answers := c.ask(placedName).Addresses // empty while DNS is down
	for _, address := range answers {
		if other := c.r.names[address.As4()[2]]; !c.r.limits.admits(c.Name, other) {
			c.r.find("%s: %s answers the address %s of %s: %+v", time.Now().Format(time.TimeOnly), c.Name, address, other, c.r.limits)
		}
	}
	if len(c.left) > 0 || c.away || !c.judge().ClearSince(c.Name, time.Now().Add(-bound)) {
		return
	}
	var ready, demoted []string
	c.objects()
	for _, slice := range c.copies {
		used, left := conditions(slice)
		ready, demoted = append(ready, used...), append(demoted, left...)
	}
	if len(ready) == 0 && len(demoted) > 0 {
		c.r.find("%s: %s demotes all endpoints of %s: %v", time.Now().Format(time.TimeOnly), c.Name, placedName, demoted)
	}
	if len(ready) > 0 && time.Since(c.shown) > publishes {
		for _, address := range answers {
			if !slices.Contains(ready, address.String()) {
				c.r.find("%s: %s answers %s, which is not among the endpoints in use: %v", time.Now().Format(time.TimeOnly),
					c.Name, address, ready)
			}
		}
	}
}
