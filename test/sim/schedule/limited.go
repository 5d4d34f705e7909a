// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/truth"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/workload"
)

// limitedName is the service of limited.
const limitedName = "limited"

// A limited is a headless service that all clusters export alike, for some clusters, with a border and tiers of a seed. No
// operation changes it, but faults do: whatever happens, no endpoint is copied to a cluster that the exports are not for,
// and none outside of the border is used or answered.
type limited struct {
	chosen, inside map[string]bool
	tiers          [][]string
}

func newLimited(s Schedule) limited {
	random := rand.New(rand.NewPCG(s.Seed, 4))
	names := s.names()
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	l := limited{chosen: map[string]bool{}, inside: map[string]bool{}}
	for _, name := range names[:1+random.IntN(len(names))] {
		l.inside[name] = true
	}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for len(l.tiers) < 1+random.IntN(3) && len(names) > 0 {
		n := 1 + random.IntN(len(names))
		l.tiers, names = append(l.tiers, names[:n]), names[n:]
	}
	names = s.names()
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+random.IntN(len(names))] {
		l.chosen[name] = true
	}
	return l
}

func (l limited) service(number int) workload.Service {
	var within, prefer []string
	for name := range l.inside {
		within = append(within, name)
	}
	slices.Sort(within)
	for _, tier := range l.tiers {
		prefer = append(prefer, strings.Join(tier, "; "))
	}
	return workload.Service{
		Name: limitedName, Present: true, Exported: true, Headless: true,
		Ports:     []truth.Port{{Name: "http", Number: 80, Protocol: "TCP"}},
		Endpoints: []truth.Endpoint{{Address: addressOf(number), Node: limitedName, Ready: true, Serving: true}},
		Annotations: map[string]string{
			export.AnnotationWithin: strings.Join(within, "; "), export.AnnotationPrefer: strings.Join(prefer, " > "),
		},
	}
}

// addressOf is the endpoint of a cluster. Those of other services begin with 200.
func addressOf(number int) netip.Addr { return netip.AddrFrom4([4]byte{10, 90, 0, byte(number + 1)}) }

// admits tells whether a cluster may use the endpoints of another.
func (l limited) admits(reader, source string) bool {
	return reader == source || l.inside[source] && l.chosen[reader]
}

// tier is the place of a cluster in the order.
func (l limited) tier(cluster string) int {
	at := slices.IndexFunc(l.tiers, func(tier []string) bool { return slices.Contains(tier, cluster) })
	if at < 0 {
		return len(l.tiers)
	}
	return at
}

// writeLimited has the cluster export the service.
func (c *cluster) writeLimited() {
	for _, each := range workload.Writes(workload.Service{Name: limitedName}, c.r.limited.service(c.load.Number),
		sim.Namespace) {
		if exported, ok := each.Object.(*v1beta1.ServiceExport); ok {
			chosen := strings.Join(slices.Sorted(maps.Keys(c.r.limited.chosen)), "; ")
			metav1.SetMetaDataAnnotation(&exported.ObjectMeta, export.AnnotationClusters, chosen)
		}
		c.carryOut(each)
	}
}

// seeLimited asserts of each state of a slice that a cluster has no endpoint that is not for it, and uses none outside of
// the border.
func (c *cluster) seeLimited(slice *discoveryv1.EndpointSlice, deleted bool) {
	from := slice.Labels[v1beta1.LabelSourceCluster]
	if !deleted && from != "" && from != c.Name && !c.r.limited.chosen[c.Name] && len(slice.Endpoints) > 0 {
		c.r.find("%s: %s has endpoints of %s, which are for %v", time.Now().Format(time.TimeOnly), c.Name, from,
			c.r.limited.chosen)
	}
	if !deleted && from != "" && !c.r.limited.admits(c.Name, from) &&
		slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return *e.Conditions.Ready || *e.Conditions.Serving }) {
		c.r.find("%s: a slice in %s serves with endpoints of %s, which is outside of the border %v", time.Now().Format(time.TimeOnly),
			c.Name, from, c.r.limited.inside)
	}
}

// askLimited asserts that DNS answers nothing outside of the border.
func (c *cluster) askLimited() {
	if c.down {
		return
	}
	_, addresses := c.Ask(limitedName)
	for _, other := range c.r.clusters {
		if !c.r.limited.admits(c.Name, other.Name) && slices.Contains(addresses, addressOf(other.load.Number)) {
			c.r.find("%s: %s answers the address of %s, which is outside of the border %v", time.Now().Format(time.TimeOnly),
				c.Name, other.Name, c.r.limited.inside)
		}
	}
}

// ordered asserts that in each cluster the ready endpoints are those of its best tier. All is whole.
func (r *run) ordered() {
	for _, c := range r.clusters {
		best := len(r.clusters)
		for _, other := range r.clusters {
			if r.limited.admits(c.Name, other.Name) {
				best = min(best, r.limited.tier(other.Name))
			}
		}
		var want, got []string
		for _, other := range r.clusters {
			if r.limited.admits(c.Name, other.Name) && r.limited.tier(other.Name) == best {
				want = append(want, addressOf(other.load.Number).String())
			}
		}
		for _, slice := range apiserver.List[*discoveryv1.EndpointSlice](c.API, discoveryv1.Resource("endpointslices")) {
			if slice.Labels[v1beta1.LabelServiceName] != limitedName {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if *endpoint.Conditions.Ready {
					got = append(got, endpoint.Addresses[0])
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want) // as text, as got
		if !slices.Equal(got, want) {
			r.find("%s uses %v of service %s, want %v: tiers %v, border %v", c.Name, got, limitedName, want, r.limited.tiers,
				r.limited.inside)
		}
	}
}
