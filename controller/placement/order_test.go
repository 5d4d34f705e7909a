// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// usedText is what kube-proxy would use first, by cluster: the ready endpoints of all slices, or else those that serve
// and terminate, with "~" before.
func usedText(result merge.Result) string {
	used := map[string][]string{}
	for _, slice := range result.EndpointSlices {
		for _, endpoint := range slice.Endpoints {
			switch c := endpoint.Conditions; {
			case isReady(&endpoint):
				used[""] = append(used[""], endpoint.Addresses[0])
			case *c.Serving && *c.Terminating:
				used["~"] = append(used["~"], "~"+endpoint.Addresses[0])
			}
		}
	}
	ready := slices.Concat(used[""], used["~"])
	slices.Sort(ready)
	return strings.Join(ready, " ")
}

// regions are the properties of clusters; those of south are not known.
var regions = map[string]map[string]string{"east": {"region": "eu"}, "near": {"region": "eu"}, "west": {"region": "us"}}

// TestOrder: the endpoints that are used first, and after "~" those that are demoted, as east sees them.
func TestOrder(t *testing.T) {
	const e, n, w, s = "10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1"
	none := map[string]string{}
	for name, test := range map[string]struct {
		prefer string
		zones  string
		odd    map[string]string // cluster to "down", "silent" or "saturated"
		want   []string
	}{
		"no order":               {"", "", none, []string{e, n, w, s}},
		"this cluster":           {"local", "", none, []string{e, "~" + n, "~" + w, "~" + s}},
		"the same, by hints":     {"local", "a", none, []string{e, n, w, s}},
		"another cluster":        {"west", "", none, []string{w, "~" + e, "~" + n, "~" + s}},
		"by property":            {"same(region)", "", none, []string{e, n, "~" + w, "~" + s}},
		"the second tier":        {"west > region=eu", "", map[string]string{"west": "down"}, []string{e, n, "~" + s}},
		"the last tier":          {"west > near", "", map[string]string{"west": "down", "near": "down"}, []string{e, s}},
		"silent is after all":    {"west", "", map[string]string{"west": "silent"}, []string{e, n, s, "~" + w}},
		"all silent":             {"west", "", map[string]string{"west": "silent", "east": "silent", "near": "silent", "south": "silent"}, []string{w, "~" + e, "~" + n, "~" + s}},
		"silent, and none else":  {"west > east", "", map[string]string{"west": "silent", "near": "silent", "east": "down", "south": "down"}, []string{w, "~" + n}},
		"hints, and an order":    {"local > west", "a", none, []string{e, w, "~" + n, "~" + s}},
		"hints, west is down":    {"local > west > near", "a", map[string]string{"west": "down"}, []string{e, n, "~" + s}},
		"hints, this is drained": {"local > west", "a", map[string]string{"east": "silent"}, []string{w, "~" + e, "~" + n, "~" + s}},
		"hints, others silent":   {"local > west", "a", map[string]string{"west": "silent", "near": "silent", "south": "silent"}, []string{e, "~" + n, "~" + s, "~" + w}},
		"saturated":              {"", "", map[string]string{"west": "saturated"}, []string{e, n, s, "~" + w}},
		"all saturated":          {"west", "", map[string]string{"west": "saturated", "east": "saturated", "near": "saturated", "south": "saturated"}, []string{w, "~" + e, "~" + n, "~" + s}},
		"saturated, then silent": {"", "", map[string]string{"west": "saturated", "east": "silent", "near": "down", "south": "down"}, []string{w, "~" + e}},
		"the best is saturated":  {"west > near", "", map[string]string{"west": "saturated"}, []string{n, "~" + e, "~" + s, "~" + w}},
		"hints, and saturated":   {"local", "a", map[string]string{"east": "saturated", "near": "saturated"}, []string{w, s, "~" + e, "~" + n}},
		"hints, others are":      {"local", "a", map[string]string{"west": "saturated", "near": "saturated", "south": "saturated"}, []string{e, "~" + n, "~" + s, "~" + w}},
		"invalid":                {"west >", "", none, []string{e, n, w, s}},
	} {
		t.Run(name, func(t *testing.T) {
			var contributions []merge.Contribution
			for i, cluster := range []string{"east", "near", "west", "south"} {
				address := []string{e, n, w, s}[i]
				if test.odd[cluster] == "down" {
					address = "!" + address
				}
				view := newView(cluster, 1+i, "80/TCP", address, prefers(test.prefer))
				view.Spec.Saturated = test.odd[cluster] == "saturated"
				contributions = append(contributions, merge.Contribution{View: view, Demote: test.odd[cluster] == "silent"})
			}
			observed := newObserved("east")
			observed.Properties = regions
			observed.Nodes.Zones = strings.Fields(test.zones)
			slices.Sort(test.want)
			diff(t, "used", usedText(merged(observed, contributions)), strings.Join(test.want, " "))
		})
	}
}

// pick returns one of the values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// atRandom is a random cluster set as one of its clusters has it. The oldest export asks for the annotations.
func atRandom(r *rand.Rand, annotations map[string]string) (Observed, []merge.Contribution) {
	observed := newObserved(pick(r, "east", "near", "west", "elsewhere"))
	observed.Properties, observed.Prefer = regions, pick(r, "", "", PreferCluster, "west > same(region)")
	observed.Nodes = Nodes{
		Zones: pick(r, nil, []string{"zone-a"}, []string{"zone-a", "zone-b"}), SomeWithoutZone: r.IntN(4) == 0,
	}
	kind := pick(r, v1beta1.ClusterSetIP, v1beta1.Headless)
	var all []merge.Contribution
	for i, cluster := range []string{"east", "near", "west", "south"}[:1+r.IntN(4)] {
		view := newView(cluster, i+1, "a:80/TCP b:81/TCP", "", families(corev1.IPv4Protocol, corev1.IPv6Protocol))
		view.Spec.Type, view.Spec.Saturated, view.Slices = kind, r.IntN(5) == 0, nil
		if i == 0 {
			if len(annotations) > 0 {
				view.Spec.Annotations = annotations
			}
			view.Spec.TrafficDistribution = pick(r, "", "", "", "PreferClose")
		}
		for n := range r.IntN(4) {
			format := pick(r, "10.%d.%d.%d", "10.%d.%d.%d", "fd00:%d::%d:%d")
			var endpoints []string
			for j := range 1 + r.IntN(3) {
				endpoints = append(endpoints, pick(r, "", "", "!")+fmt.Sprintf(format, i+1, n+1, j+1))
			}
			slice := newSlice(fmt.Sprintf("web-%s-%d", cluster, n), pick(r, "a:80/TCP", "b:81/TCP", "a:80/TCP b:81/TCP", ""),
				strings.Join(endpoints, " "))
			for j := range slice.Endpoints {
				slice.Endpoints[j].Zone = pick(r, nil, ptr.To("zone-a"), ptr.To("zone-b"))
				if !isReady(&slice.Endpoints[j]) && r.IntN(2) == 0 {
					slice.Endpoints[j].Conditions = export.Conditions(false, true, true)
				}
			}
			view.Slices = append(view.Slices, slice)
		}
		all = append(all, merge.Contribution{View: view, Demote: r.IntN(4) == 0})
	}
	return observed, all
}

// annotationsAtRandom ask for an order, which may not be valid, and for a border.
func annotationsAtRandom(r *rand.Rand) map[string]string {
	asked := map[string]string{}
	if r.IntN(2) == 0 {
		asked[export.AnnotationPrefer] = pick(r, "cluster", "none", "one two", "local > same(region)",
			"west; south > region=eu > local", "same(region)", "east > *")
	}
	if r.IntN(3) == 0 {
		asked[export.AnnotationWithin] = pick(r, "same(region)", "west; region=eu", "one two", "*")
	}
	return asked
}

// written returns the object of a slice of a view.
func written(observed Observed, result merge.Result, view *export.View, slice *export.Slice) *discoveryv1.EndpointSlice {
	name := slice.Name
	if view.Cluster != observed.Cluster {
		name = export.SliceName(view.Cluster, web, slice.Name, slice.AddressType)
	}
	at := slices.IndexFunc(result.EndpointSlices, func(s *discoveryv1.EndpointSlice) bool { return s.Name == name })
	return result.EndpointSlices[at]
}

// standingOf is where the generated cluster set says that the endpoints of a contribution come, by other words than the
// placement: a list of numbers, compared one after the other.
func standingOf(observed Observed, result merge.Result, c merge.Contribution) (demoted, counts []int) {
	imported := result.ServiceImport
	tiers, _ := tiersOf(ptr.Deref(imported.Spec.TrafficDistribution, ""), imported.Annotations[export.AnnotationPrefer], observed.Prefer)
	if imported.Spec.Type == v1beta1.Headless && tiers.onlyLocal() {
		tiers = Tiers{}
	}
	tier := tiers.Of(clusterOf(observed, c.View.Cluster), clusterOf(observed, observed.Cluster))
	last := tier
	if nodes := observed.Nodes; c.View.Cluster == observed.Cluster && tiers.localFirst() &&
		imported.Spec.Type != v1beta1.Headless && !nodes.SomeWithoutZone && len(nodes.Zones) > 0 {
		last = 1000
	}
	silent, saturated := 0, 0
	if c.Demote {
		silent = 1
	}
	if c.View.Spec.Saturated {
		saturated = 1
	}
	return []int{silent, saturated, tier}, []int{silent, saturated, last}
}

func clusterOf(observed Observed, id string) scope.Cluster {
	return scope.Cluster{ID: id, Properties: observed.Properties[id]}
}

func outside(observed Observed, result merge.Result, c merge.Contribution) bool {
	border, _ := parseBorder(result.ServiceImport.Annotations[export.AnnotationWithin])
	return border != nil && c.View.Cluster != observed.Cluster &&
		!border.Selects(clusterOf(observed, c.View.Cluster), clusterOf(observed, observed.Cluster))
}

// TestOrderAtRandom: in random cluster sets an endpoint is demoted if, and only if, what it serves has a ready endpoint
// that comes before. The order of contributions does not matter, what is read of the slices is what was exported, and
// the merge comes to rest.
func TestOrderAtRandom(t *testing.T) {
	t.Parallel()
	demoted, kept, beyond := 0, 0, 0
	for seed := range uint64(6000) {
		r := rand.New(rand.NewPCG(seed, 2))
		observed, contributions := atRandom(r, annotationsAtRandom(r))
		result := merged(observed, contributions)
		again := slices.Clone(contributions)
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		diff(t, fmt.Sprintf("cluster set %d: another order", seed), merged(observed, again), result)
		settled(t, observed, contributions)
		checkHints(t, fmt.Sprintf("cluster set %d: ", seed), result.EndpointSlices)
		serves := func(slice *export.Slice) (all []string) {
			for _, target := range slice.Targets {
				all = append(all, fmt.Sprint(slice.AddressType, target.Number))
			}
			if result.ServiceImport.Spec.Type == v1beta1.Headless {
				all = append(all, string(slice.AddressType))
			}
			return all
		}
		before := func(own []int, what string) bool {
			return slices.ContainsFunc(contributions, func(c merge.Contribution) bool {
				_, counts := standingOf(observed, result, c)
				return slices.Compare(counts, own) < 0 && !outside(observed, result, c) &&
					slices.ContainsFunc(c.View.Slices, func(s export.Slice) bool {
						return slices.Contains(append(serves(&s), string(s.AddressType)), what) && anyReady(&s)
					})
			})
		}
		for _, c := range contributions {
			beyondBorder := outside(observed, result, c)
			own, _ := standingOf(observed, result, c)
			for i := range c.View.Slices {
				slice := &c.View.Slices[i]
				what := serves(slice)
				want := !slices.ContainsFunc(what, func(each string) bool { return !before(own, each) })
				for j, now := range written(observed, result, c.View, slice).Endpoints {
					switch {
					case beyondBorder:
						if isReady(&now) || *now.Conditions.Serving {
							t.Fatalf("cluster set %d: %s uses %s, which is outside", seed, observed.Cluster, c.View.Cluster)
						}
						beyond++
					case !isReady(&slice.Endpoints[j]) || len(what) == 0: // no traffic
					case isReady(&now) == want:
						t.Fatalf("cluster set %d, %s in %s: endpoint %v of %s is demoted: %t, want %t", seed,
							c.View.Cluster, observed.Cluster, now.Addresses, slice.Name, !want, want)
					case want:
						demoted++
					default:
						kept++
					}
				}
			}
			if view := reread(t, c.View.Cluster, result); !beyondBorder && len(c.View.Slices) > 0 {
				diff(t, fmt.Sprintf("cluster set %d: view of %s", seed, c.View.Cluster), view, c.View)
			}
		}
	}
	if demoted < 200 || kept < 2000 || beyond < 200 {
		t.Errorf("%d endpoints were demoted, %d were not, %d were outside", demoted, kept, beyond)
	}
}

func anyReady(slice *export.Slice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return isReady(&e) })
}

// reread is the view of a cluster from its slices in a result: those that it publishes, or the copies of them.
func reread(t testing.TB, cluster string, result merge.Result) *export.View {
	t.Helper()
	view, found := export.FromSlices(export.Source{Cluster: cluster}, web, export.SlicesOf(cluster, result.EndpointSlices), nil)
	if len(found) > 0 {
		t.Fatalf("slices of %s are read with problems: %v", cluster, found)
	}
	return view
}
