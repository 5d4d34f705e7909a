// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// policySchedules is how many random schedules TestPolicies runs.
const policySchedules = 30

// TestPolicies runs random schedules in which exports choose clusters, readers limit their members and change their
// properties, contact, controllers and API servers are lost, and API servers are restored from backups. At no moment has a reader a copy of an endpoint that it
// was never allowed to have, and in the end each has all that it may have, and nothing else.
func TestPolicies(t *testing.T) {
	definition, err := os.ReadFile("testdata/about.yaml")
	must(t, err)
	for seed := range uint64(policySchedules) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sim.Run(t, []string{"c1", "c2", "c3"}, func(t *testing.T, set *sim.ClusterSet) {
				p := newPolicies(t, set, rand.New(rand.NewPCG(seed, 7)), definition)
				for range 25 {
					p.step()
					p.judge()
				}
				p.heal()
			})
		})
	}
}

// policies are what a schedule has decided.
type policies struct {
	t      *testing.T
	set    *sim.ClusterSet
	random *rand.Rand
	log    []string

	sources map[string]*chosenExport
	readers map[string]*reader
	// endpoints are all that there ever were, by address.
	endpoints map[string]*policedEndpoint
	next      int
	down      map[string]func() // what ends a fault
}

// A chosenExport is the export of a cluster.
type chosenExport struct {
	exported bool
	clusters string // empty for all
	address  string
}

// A reader is what a cluster is and accepts, and what it has of others.
type reader struct {
	region string
	// was are the former regions, and when they were left. The controller may know them until some time after that, and
	// after its API server was away: blind.
	was      map[string]time.Time
	blind    time.Time
	patterns map[string]string // by source; missing without the annotation
	stale    map[string]string // those that the controller knows while its API server is away, else nil
	revision int64
}

// A policedEndpoint was published for clusters, and allowed are the readers that could have been among them.
type policedEndpoint struct {
	source  string
	chosen  []string
	allowed map[string]bool
}

const service = "web"

func newPolicies(t *testing.T, set *sim.ClusterSet, random *rand.Rand, definition []byte) *policies {
	p := &policies{
		t: t, set: set, random: random, sources: map[string]*chosenExport{}, readers: map[string]*reader{},
		endpoints: map[string]*policedEndpoint{}, down: map[string]func(){},
	}
	for _, c := range set.Clusters() {
		c.Define(definition)
		p.sources[c.Name] = &chosenExport{}
		p.readers[c.Name] = &reader{was: map[string]time.Time{"": time.Now()}, patterns: map[string]string{}}
		c.Serve(service, true)
	}
	return p
}

func (p *policies) note(format string, args ...any) {
	p.log = append(p.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// any is one of some values.
func anyOf[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

// step changes something, and lets time pass.
func (p *policies) step() {
	names := slices.Sorted(maps.Keys(p.sources))
	name := anyOf(p.random, names...)
	other := anyOf(p.random, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })...)
	c := p.set.Cluster(name)
	switch p.random.IntN(10) {
	case 0, 1, 2:
		p.choose(c, anyOf(p.random, "", "", "c1", "c2; c3", "region=a", "region in (a, b)", "!region", "c1; region!=a", "nobody"))
	case 3:
		p.sources[name].exported = !p.sources[name].exported
		p.note("%s exports: %v", name, p.sources[name].exported)
		if p.sources[name].exported {
			p.choose(c, p.sources[name].clusters)
		} else {
			c.Withdraw(service)
		}
	case 4:
		p.serve(c)
	case 5:
		p.accept(c, other, anyOf(p.random, "-", "-", "*", "", sim.Namespace, sim.Namespace+"/w?b", sim.Namespace+"/db", "other"))
	case 6:
		p.describe(c, anyOf(p.random, "a", "b", "c"))
	default:
		p.fault(c, other)
	}
	sim.Wait(time.Duration(p.random.IntN(30)) * time.Second)
}

// choose changes the clusters that an export is for, and its endpoints when the controller knows.
func (p *policies) choose(c *sim.Cluster, clusters string) {
	s := p.sources[c.Name]
	s.clusters = clusters
	if !s.exported {
		return
	}
	p.note("%s exports to %q", c.Name, clusters)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "metadata": map[string]any{"name": service},
	}}
	if clusters != "" {
		object.SetAnnotations(map[string]string{export.AnnotationClusters: clusters})
	}
	exports := c.Dynamic.Resource(schema.GroupVersionResource{
		Group: v1beta1.GroupName, Version: "v1beta1", Resource: "serviceexports",
	}).Namespace(sim.Namespace)
	existing, err := exports.Get(context.Background(), service, metav1.GetOptions{})
	if err != nil {
		_, err = exports.Create(context.Background(), object, metav1.CreateOptions{})
	} else {
		existing.SetAnnotations(object.GetAnnotations())
		_, err = exports.Update(context.Background(), existing, metav1.UpdateOptions{})
	}
	must(p.t, err)
	if current := p.endpoints[s.address]; current != nil {
		current.chosen = append(current.chosen, clusters)
	}
	p.allow()
	sim.Wait(2 * time.Second)
	p.serve(c)
}

// serve gives the Service an endpoint that it never had.
func (p *policies) serve(c *sim.Cluster) {
	p.next++
	s := p.sources[c.Name]
	s.address = fmt.Sprintf("10.9.%d.%d", p.next/200, 1+p.next%200)
	p.endpoints[s.address] = &policedEndpoint{source: c.Name, chosen: []string{s.clusters}, allowed: map[string]bool{}}
	p.allow()
	p.note("%s serves %s", c.Name, s.address)
	c.SetEndpoints(service, s.address)
}

// accept changes what a reader accepts of a source; "-" removes the annotation.
func (p *policies) accept(c *sim.Cluster, source, patterns string) {
	p.note("%s accepts %q of %s", c.Name, patterns, source)
	secrets := c.Kube.CoreV1().Secrets(member.DefaultNamespace)
	text := `"` + patterns + `"`
	delete(p.readers[c.Name].patterns, source)
	if patterns == "-" {
		text = "null"
	} else {
		p.readers[c.Name].patterns[source] = patterns
	}
	_, err := secrets.Patch(context.Background(), "member-"+source, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, scope.AcceptAnnotation, text), metav1.PatchOptions{})
	must(p.t, err)
	p.allow()
	sim.Wait(2 * time.Second)
}

// describe changes a property of a cluster, which its controller knows within a minute.
func (p *policies) describe(c *sim.Cluster, region string) {
	p.note("%s is in %q", c.Name, region)
	r := p.readers[c.Name]
	r.was[r.region] = time.Now()
	r.region = region
	properties := c.Dynamic.Resource(schema.GroupVersionResource{
		Group: "about.k8s.io", Version: "v1alpha1", Resource: "clusterproperties",
	})
	_ = properties.Delete(context.Background(), "region", metav1.DeleteOptions{}) // if it is there
	_, err := properties.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "about.k8s.io/v1alpha1", "kind": "ClusterProperty", "metadata": map[string]any{"name": "region"},
		"spec": map[string]any{"value": region},
	}}, metav1.CreateOptions{})
	must(p.t, err)
	p.allow()
}

// allow notes which clusters may have each endpoint from now on.
func (p *policies) allow() {
	for name, r := range p.readers {
		if p.down["API "+name] != nil {
			r.blind = time.Now()
		}
	}
	for _, each := range p.endpoints {
		for name, r := range p.readers {
			if name == each.source || each.allowed[name] || !r.accepts(each.source) {
				continue
			}
			for _, clusters := range each.chosen {
				for _, region := range r.regions() {
					each.allowed[name] = each.allowed[name] || chooses(clusters, name, region)
				}
			}
		}
	}
}

// listed is the time within which a controller has surely listed its properties.
const listed = 100 * time.Second

// regions are those that the controller may know.
func (r *reader) regions() []string {
	all := []string{r.region}
	for region, left := range r.was {
		if time.Since(left) < listed || time.Since(r.blind) < listed {
			all = append(all, region)
		}
	}
	return all
}

func (r *reader) accepts(source string) bool {
	return accepts(r.patterns, source) || r.stale != nil && accepts(r.stale, source)
}

func accepts(patterns map[string]string, source string) bool {
	text, own := patterns[source]
	if !own {
		return true
	}
	parsed, err := scope.ParsePatterns(text)
	return err == nil && parsed.Accepts(types.NamespacedName{Namespace: sim.Namespace, Name: service})
}

func chooses(clusters, name, region string) bool {
	if clusters == "" {
		return true
	}
	parsed, err := scope.ParseAbsolute(clusters)
	is := scope.Cluster{ID: name, Properties: map[string]string{"region": region}}
	if region == "" {
		is.Properties = map[string]string{}
	}
	return err == nil && parsed.Selects(is, is)
}

// reconnected is the time after the start of an API server within which a controller has surely read its Secrets: more
// than the longest backoff of its caches. Until then it knows what it accepted before.
const reconnected = 10 * time.Second

// fault begins a fault, or ends it if it lasts.
func (p *policies) fault(c *sim.Cluster, other string) {
	begin := func(what string, begins func() func()) {
		if ends := p.down[what]; ends != nil {
			p.note("ends: %s", what)
			p.allow()
			delete(p.down, what)
			ends()
			return
		}
		p.note("begins: %s", what)
		if ends := begins(); ends != nil {
			p.down[what] = ends
		}
	}
	switch p.random.IntN(5) {
	case 0:
		begin("cut "+c.Name+" "+other, func() func() {
			p.set.Network.Cut(c.Name, other, network.Both)
			p.set.Network.Reset(c.Name, other)
			return func() { p.set.Network.Restore(c.Name, other) }
		})
	case 1:
		begin("controller "+c.Name, func() func() {
			c.KillController()
			return func() { c.StartController() }
		})
	case 2:
		if p.down["controller "+c.Name] == nil {
			p.note("%s restarts", c.Name)
			c.StopController()
			c.StartController()
		}
	case 3:
		begin("API "+c.Name, func() func() {
			r := p.readers[c.Name]
			r.stale = maps.Clone(r.patterns)
			c.StopAPI()
			return func() {
				c.StartAPI()
				sim.Wait(reconnected)
				r.stale = nil
			}
		})
	case 4:
		begin("backup of "+c.Name, func() func() { return p.backup(c) })
	}
}

// backup backs up the API server of a cluster, and returns what restores it: the cluster exports, accepts and is what it
// did and was then. What it may have had of others, it may have.
func (p *policies) backup(c *sim.Cluster) (restore func()) {
	source, r := p.sources[c.Name], p.readers[c.Name]
	kept, of, patterns, region := c.API.Backup(), *source, maps.Clone(r.patterns), r.region
	return func() {
		p.judge()
		reset := p.down["API "+c.Name] == nil && p.random.IntN(2) == 0
		if reset {
			c.StopAPI()
		}
		c.API.Restore(kept)
		if reset {
			c.StartAPI()
		}
		r.revision = c.API.Revision()
		r.was[r.region] = time.Now()
		*source, r.patterns, r.region = of, patterns, region
		if current := p.endpoints[of.address]; current != nil {
			current.chosen = append(current.chosen, of.clusters)
		}
		p.allow()
		if reset {
			sim.Wait(reconnected)
		}
	}
}

// judge looks at each copy that was written since it last looked, and at the answer now.
func (p *policies) judge() {
	p.t.Helper()
	for _, c := range p.set.Clusters() {
		r := p.readers[c.Name]
		events, revision := c.API.After(r.revision)
		r.revision = revision
		for _, each := range events {
			slice, ok := each.Object.(*discoveryv1.EndpointSlice)
			if !ok || each.Type == watch.Deleted {
				continue
			}
			for _, address := range copied(c.Name, slice) {
				if e := p.endpoints[address]; e == nil || !e.allowed[c.Name] {
					p.t.Fatalf("%s: %s has a copy of %s, which it may not have: %+v\n%s", each.At.Format("15:04:05.000"), c.Name,
						address, e, strings.Join(p.log, "\n"))
				}
			}
		}
		_, answer := c.Ask(service)
		for _, address := range answer {
			if e := p.endpoints[address.String()]; e == nil || e.source != c.Name && !e.allowed[c.Name] {
				p.t.Fatalf("%s answers %s, which it may not have: %+v\n%s", c.Name, address, e, strings.Join(p.log, "\n"))
			}
		}
	}
}

// copied returns the addresses of a slice that is a copy.
func copied(reader string, slice *discoveryv1.EndpointSlice) (addresses []string) {
	if from := slice.Labels[v1beta1.LabelSourceCluster]; from == "" || from == reader {
		return nil
	}
	for _, each := range slice.Endpoints {
		addresses = append(addresses, each.Addresses...)
	}
	return addresses
}

// patience is how long it may take until each cluster has what it may have: a member that lost most of its exports is
// held for 5 minutes.
const patience = 8 * time.Minute

// heal ends all faults, and asserts that each cluster then gets what it may have, and keeps it for two minutes.
func (p *policies) heal() {
	p.t.Helper()
	p.note("all is whole")
	for _, what := range slices.Sorted(maps.Keys(p.down)) {
		p.down[what]()
	}
	lasts := 0 // in tens of seconds: properties are known after 100 s at the latest (listed)
	for end := time.Now().Add(patience); lasts < 12; {
		sim.Wait(10 * time.Second)
		p.judge()
		wrong := p.differs()
		if lasts++; wrong != "" {
			lasts = 0
		}
		if wrong != "" && time.Now().After(end) {
			p.t.Fatalf("not within %s: %s\n%s", patience, wrong, strings.Join(p.log, "\n"))
		}
	}
}

// differs returns what a cluster has and should not have, or lacks.
func (p *policies) differs() string {
	for _, c := range p.set.Clusters() {
		want := []string{}
		for name, s := range p.sources {
			r := p.readers[c.Name]
			if name != c.Name && s.exported && s.address != "" && r.accepts(name) && chooses(s.clusters, c.Name, r.region) {
				want = append(want, s.address)
			}
		}
		list, err := c.Kube.DiscoveryV1().EndpointSlices(sim.Namespace).List(context.Background(), metav1.ListOptions{})
		must(p.t, err)
		got := []string{}
		for i := range list.Items {
			got = append(got, copied(c.Name, &list.Items[i])...)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Sprintf("%s has %v, want %v", c.Name, got, want)
		}
	}
	return ""
}
