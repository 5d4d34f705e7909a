// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/judge"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/truth"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/workload"
)

// weightedName is a headless service that all clusters export. Its weights, what says that clusters are saturated, and
// its endpoints change (kind reweigh): at any moment those that are used must be those that the weights have, as far as
// what a cluster knows is certain. The oracle follows the rules of docs/use/export-services.md, and shares no code with the
// controller.
const weightedName = "weighted"

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

// A weighted is what the administrators of a cluster decided about the service.
type weighted struct {
	weights   int               // of weighings
	says      map[string]string // annotations of the ServiceExport
	endpoints []truth.Endpoint
}

// A known is a contribution that surely arrived at a reader, and when that was certain.
type known struct {
	contribution
	at time.Time
}

// A sharing is what a run knows of the service in all clusters.
type sharing struct {
	// used has pairs of addresses of which the second one was left out although the first was used, and where.
	used map[[2]string]string
	// known has what surely arrived.
	known map[judge.Way]known
}

// reweighs adds changes of the service to a schedule. They have random numbers of their own.
func (s *Schedule) reweighs() {
	random := rand.New(rand.NewPCG(s.Seed, 6))
	for range random.IntN(12) {
		s.Events = append(s.Events, Event{
			At: time.Duration(random.Int64N(int64(storm))).Round(time.Millisecond), Kind: reweigh,
			Cluster: random.IntN(s.Clusters), Random: random.Uint64(),
		})
	}
}

// reweigh changes the service.
func (c *cluster) reweigh(random *rand.Rand) {
	if random.IntN(3) == 0 { // all exports are to say the same
		weights := random.IntN(len(weighings))
		c.r.note("weights %q", weighings[weights].text)
		for _, each := range c.r.clusters {
			each.weighted.weights = weights
			each.writeWeighted()
		}
		return
	}
	if random.IntN(2) == 0 {
		c.weighted.says = nil
		if random.IntN(2) == 0 {
			c.weighted.says = map[string]string{export.AnnotationSaturated: "true"}
		}
	} else {
		c.weighted.drawEndpoints(random, c.load.Number)
	}
	c.r.note("%s: %s is %+v", c.Name, weightedName, c.weighted)
	c.writeWeighted()
}

// weightedEndpoints is how many endpoints a cluster may have.
const weightedEndpoints = 8

// weightedAddress is one of them.
func weightedAddress(number, i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 91, byte(number), byte(i + 1)})
}

// drawEndpoints draws from few addresses, so that the same ones are used and left out again.
func (w *weighted) drawEndpoints(random *rand.Rand, number int) {
	w.endpoints = nil
	ready := 1 + random.IntN(4)
	for i := range weightedEndpoints {
		if random.IntN(3) > 0 {
			is := random.IntN(4) < ready
			w.endpoints = append(w.endpoints, truth.Endpoint{
				Address: weightedAddress(number, i), Node: fmt.Sprintf("w%d", i), Ready: is, Serving: is,
			})
		}
	}
}

// writeWeighted has the cluster export the service.
func (c *cluster) writeWeighted() {
	if c.away {
		return // it is written in the end
	}
	c.r.Changes++
	service := workload.Service{
		Name: weightedName, Present: true, Exported: true, Headless: true,
		Ports: []truth.Port{{Name: "http", Number: 80, Protocol: "TCP"}}, Endpoints: c.weighted.endpoints,
	}
	if text := weighings[c.weighted.weights].text; text != "" {
		service.Annotations = map[string]string{export.AnnotationWeights: text}
	}
	for _, each := range workload.Writes(workload.Service{Name: weightedName}, service, sim.Namespace) {
		if exported, ok := each.Object.(*v1beta1.ServiceExport); ok {
			exported.SetAnnotations(c.weighted.says)
		}
		c.carryOut(each)
	}
}

// contributes reads the ground truth.
func (c *cluster) contributes() (is contribution) {
	exported := at(apiserver.List[*unstructured.Unstructured](c.API, v1beta1.Resource("serviceexports")), weightedName)
	if exported == nil || at(apiserver.List[*corev1.Service](c.API, corev1.Resource("services")), weightedName) == nil {
		return contribution{}
	}
	is.exported, is.created = true, exported.GetCreationTimestamp().Time
	text, _, _ := unstructured.NestedString(exported.Object, "spec", "exportedAnnotations", export.AnnotationWeights)
	for _, weighing := range weighings {
		if weighing.text == text {
			is.weights = weighing.says
		}
	}
	for _, slice := range apiserver.List[*discoveryv1.EndpointSlice](c.API, discoveryv1.Resource("endpointslices")) {
		if slice.Labels[discoveryv1.LabelServiceName] == weightedName {
			ready, _ := conditions(slice)
			is.ready += len(ready)
		}
	}
	is.saturated = exported.GetAnnotations()[export.AnnotationSaturated] == "true"
	return is
}

// at returns the object of a name, or the zero value.
func at[T metav1.Object](all []T, name string) (found T) {
	for _, each := range all {
		if each.GetName() == name {
			return each
		}
	}
	return found
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

// seeWeighted asserts of each state of a slice that the endpoints that it has in use are before those that are left out
// in one order, which is the same in all clusters and at all times.
func (c *cluster) seeWeighted(slice *discoveryv1.EndpointSlice) {
	c.shown = time.Now()
	ready, demoted := conditions(slice)
	for _, one := range ready {
		for _, other := range demoted {
			if where, wrong := c.r.sharing.used[[2]string{other, one}]; wrong {
				c.r.find("%s: a slice in %s uses %s before %s, which was used before it in %s",
					time.Now().Format(time.TimeOnly), c.Name, one, other, where)
			}
			c.r.sharing.used[[2]string{one, other}] = c.Name
		}
	}
}

// lookAtTruth notes what the clusters contribute, and since when.
func (r *run) lookAtTruth() {
	for _, c := range r.clusters {
		if !c.unread {
			continue
		}
		c.unread = false
		if is := c.contributes(); !reflect.DeepEqual(is, c.contribution) {
			c.contribution, c.contributed = is, append(c.contributed, time.Now())
		}
	}
}

// quick is after how long a change has surely arrived over a way that is clear.
const quick = 10 * time.Second

// clearFor tells whether a way is clear, and was for so long or since the schedule began.
func (r *run) clearFor(way judge.Way, long time.Duration) bool {
	since := time.Now().Add(-long)
	if since.Before(r.began) {
		since = r.began
	}
	return r.judge.ClearSince(way.From, way.To, since)
}

// knows returns what the cluster surely knows of another, and whether it surely takes it for silent.
func (c *cluster) knows(other *cluster) (is contribution, silent, certain bool) {
	way, now := judge.Way{From: other.Name, To: c.Name}, time.Now()
	if c.r.clearFor(way, bound) {
		if len(other.contributed) > 0 && now.Sub(other.contributed[len(other.contributed)-1]) < quick {
			return contribution{}, false, false
		}
		c.r.sharing.known[way] = known{other.contribution, now}
		// A member that failed often is taken for silent for longer.
		return other.contribution, false, other == c || c.r.clearFor(way, 2*bound)
	}
	began, told := c.r.silent[way], c.r.sharing.known[way]
	if began.IsZero() || now.Sub(began) < bound || began.Sub(told.at) > 2*c.r.lookEvery ||
		slices.ContainsFunc(other.contributed, func(at time.Time) bool {
			return at.After(told.at) && at.Before(began.Add(2*c.r.lookEvery))
		}) {
		return contribution{}, false, false
	}
	return told.contribution, true, true
}

// publishes is more than the time between two answers of DNS while a service changes all the time.
const publishes = 200 * time.Millisecond

// askWeighted asserts of a cluster what is used and answered now.
func (c *cluster) askWeighted() {
	got, ready, demoted := map[string]int{}, []string{}, []string{}
	for _, slice := range apiserver.List[*discoveryv1.EndpointSlice](c.API, discoveryv1.Resource("endpointslices")) {
		if slice.Labels[v1beta1.LabelServiceName] == weightedName {
			used, left := conditions(slice)
			ready, demoted = append(ready, used...), append(demoted, left...)
			got[slice.Labels[v1beta1.LabelSourceCluster]] += len(used)
		}
	}
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	if len(c.left) > 0 || c.away || !c.r.clearFor(judge.Way{From: c.Name, To: c.Name}, bound) {
		return
	}
	if len(ready) == 0 && len(demoted) > 0 {
		c.r.find("%s: %s demotes all endpoints of %s: %v", time.Now().Format(time.TimeOnly), c.Name, weightedName, demoted)
	}
	if !c.down && len(ready) > 0 && time.Since(c.shown) > publishes {
		_, answer := c.Ask(weightedName)
		for _, address := range answer {
			if !slices.Contains(ready, address.String()) {
				c.r.find("%s: %s answers %s, which is not among the endpoints in use: %v", time.Now().Format(time.TimeOnly),
					c.Name, address, ready)
			}
		}
	}
	all, heard, silent := map[string]contribution{}, 0, map[string]bool{}
	for _, other := range c.r.clusters {
		is, isSilent, certain := c.knows(other)
		switch {
		case !certain:
			return
		case isSilent:
			silent[other.Name] = true
		case other != c:
			heard++
		}
		all[other.Name] = is
	}
	if len(silent) > 1 && heard == 0 {
		return // it takes itself for cut off
	}
	c.r.Weighed++
	if want := inUse(all, silent); !maps.Equal(want, got) {
		c.r.find("%s: %s uses %v of %s, want %v of %+v, silent %v", time.Now().Format(time.TimeOnly), c.Name, got,
			weightedName, want, all, silent)
	}
}

// weighed asserts that the shares are right in each cluster once all is whole.
func (r *run) weighed() {
	for _, c := range r.clusters {
		before := r.Weighed
		if c.askWeighted(); r.Weighed == before {
			r.find("it is not certain what %s knows of %s although all is whole", c.Name, weightedName)
		}
	}
}
