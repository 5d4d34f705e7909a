// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
	"github.com/clusterset-dns/clusterset-dns/controller/selector"
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// usedText is what kube-proxy would use first, by cluster: the ready endpoints of all slices, or else those that serve
// and terminate, with "~" before.
func usedText(result Result) string {
	used := map[string][]string{}
	for _, slice := range result.EndpointSlices {
		for _, endpoint := range slice.Endpoints {
			switch c := endpoint.Conditions; {
			case isReady(endpoint):
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
			var contributions []Contribution
			for i, cluster := range []string{"east", "near", "west", "south"} {
				address := []string{e, n, w, s}[i]
				if test.odd[cluster] == "down" {
					address = "!" + address
				}
				view := newView(cluster, 1+i, "80/TCP", address, prefers(test.prefer))
				view.Spec.Saturated = test.odd[cluster] == "saturated"
				contributions = append(contributions, Contribution{
					View:   view,
					Demote: test.odd[cluster] == "silent",
					Properties: map[string]map[string]string{
						"east": {"region": "eu"}, "near": {"region": "eu"}, "west": {"region": "us"},
					}[cluster],
				})
			}
			observed := newObserved("east")
			observed.Properties = map[string]string{"region": "eu"}
			observed.Nodes.Zones = strings.Fields(test.zones)
			slices.Sort(test.want)
			diff(t, "used", usedText(Merge(observed, contributions)), strings.Join(test.want, " "))
		})
	}
}

// standingOf is where the generated cluster set says that the endpoints of a contribution come, by other words than the
// merge: a list of numbers, compared one after the other.
func standingOf(observed Observed, result Result, c Contribution) (demoted, counts []int) {
	imported := result.ServiceImport
	tiers, _ := locality.TiersOf(ptr.Deref(imported.Spec.TrafficDistribution, ""), imported.Annotations[export.AnnotationPrefer], observed.Prefer)
	if imported.Spec.Type == v1beta1.Headless && tiers.OnlyLocal() {
		tiers, _ = locality.TiersOf("", "none", "")
	}
	here := selector.Cluster{ID: observed.Cluster, Properties: observed.Properties}
	tier := tiers.Of(selector.Cluster{ID: c.View.Cluster, Properties: c.Properties}, here)
	last := tier
	if nodes := observed.Nodes; c.View.Cluster == observed.Cluster && tiers.LocalFirst() &&
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

func outside(observed Observed, result Result, c Contribution) bool {
	border, _ := traffic.ParseBorder(result.ServiceImport.Annotations[export.AnnotationWithin])
	return !border.Admits(selector.Cluster{ID: c.View.Cluster, Properties: c.Properties},
		selector.Cluster{ID: observed.Cluster, Properties: observed.Properties})
}

// TestOrderAtRandom: in random cluster sets an endpoint is demoted if, and only if, what it serves has a ready endpoint
// that comes before.
func TestOrderAtRandom(t *testing.T) {
	t.Parallel()
	demoted, kept, beyond := 0, 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		members := randomClusterset(t, r)
		observed := pick(r, members...).observed
		contributions := contributionsIn(r, observed.Cluster, members)
		result := Merge(observed, contributions)
		if result.Plan == nil || result.Plan.cuts != nil { // see TestWeightsAtRandom
			continue
		}
		present, _ := divide(contributions)
		serves := func(slice *export.Slice) (all []string) {
			for _, target := range slice.Targets {
				if _, imported := result.Plan.agreed.index[portKey{target.Protocol, target.Number}]; imported {
					all = append(all, fmt.Sprint(slice.AddressType, target.Protocol, target.Number))
				}
			}
			if result.ServiceImport.Spec.Type == v1beta1.Headless {
				all = append(all, string(slice.AddressType))
			}
			return all
		}
		offered := func(slice *export.Slice, what string) bool {
			return slices.Contains(append(serves(slice), string(slice.AddressType)), what) &&
				slices.ContainsFunc(slice.Endpoints, isReady)
		}
		before := func(own []int, what string) bool {
			return slices.ContainsFunc(present, func(c Contribution) bool {
				_, counts := standingOf(observed, result, c)
				return slices.Compare(counts, own) < 0 && !outside(observed, result, c) &&
					slices.ContainsFunc(c.View.Slices, func(s export.Slice) bool { return offered(&s, what) })
			})
		}
		for _, c := range present {
			if outside(observed, result, c) {
				for _, slice := range result.EndpointSlices {
					if slice.Labels[export.LabelSourceCluster] == c.View.Cluster &&
						slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return isReady(e) || *e.Conditions.Serving }) {
						t.Fatalf("cluster set %d: %s uses %s, which is outside", seed, observed.Cluster, c.View.Cluster)
					}
				}
				beyond++
				continue
			}
			own, _ := standingOf(observed, result, c)
			for i := range c.View.Slices {
				slice := &c.View.Slices[i]
				what := serves(slice)
				if len(what) == 0 {
					continue // no traffic
				}
				want := !slices.ContainsFunc(what, func(each string) bool { return !before(own, each) })
				at := slices.IndexFunc(result.EndpointSlices, func(s *discoveryv1.EndpointSlice) bool {
					return s.Name == sliceName(observed, c.View, slice)
				})
				for j, endpoint := range slice.Endpoints {
					if !isReady(endpoint) {
						continue
					}
					got := !isReady(result.EndpointSlices[at].Endpoints[j])
					if got != want {
						t.Fatalf("cluster set %d, %s in %s: endpoint %v of %s is demoted: %t, want %t", seed,
							c.View.Cluster, observed.Cluster, endpoint.Addresses, slice.Name, got, want)
					}
					if got {
						demoted++
					} else {
						kept++
					}
				}
			}
		}
	}
	if demoted < 200 || kept < 2000 || beyond < 200 {
		t.Errorf("%d endpoints were demoted, %d were not, %d clusters were outside", demoted, kept, beyond)
	}
}

// TestWithoutSettings: endpoints are demoted as they were before there were tiers, borders, weights and saturation: those
// of silent and drained clusters, slice by slice, if others have ready ones for all that the slice serves.
func TestWithoutSettings(t *testing.T) {
	t.Parallel()
	demoted := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		members := randomClusterset(t, r)
		observed := pick(r, members...).observed
		observed.Prefer = ""
		contributions := copyOfAll(contributionsIn(r, observed.Cluster, members))
		for _, c := range contributions {
			if !c.View.Absent() {
				c.View.Spec.Annotations, c.View.Spec.Saturated = nil, false
			}
		}
		result := Merge(observed, contributions)
		if result.Plan == nil {
			continue
		}
		present, _ := divide(contributions)
		covered := map[served]bool{}
		for _, c := range present {
			for i := range c.View.Slices {
				if slice := &c.View.Slices[i]; !c.Demote && anyReady(slice) {
					covered[served{addressType: slice.AddressType}] = true
					for _, target := range slice.Targets {
						covered[served{slice.AddressType, target.Protocol, target.Number}] = true
					}
				}
			}
		}
		for _, c := range present {
			for i := range c.View.Slices {
				slice := &c.View.Slices[i]
				want := c.Demote &&
					(result.Plan.agreed.spec.Type != v1beta1.Headless || covered[served{addressType: slice.AddressType}]) &&
					!slices.ContainsFunc(slice.Targets, func(target export.Target) bool {
						_, imported := result.Plan.agreed.index[portKey{target.Protocol, target.Number}]
						return imported && !covered[served{slice.AddressType, target.Protocol, target.Number}]
					})
				at := slices.IndexFunc(result.EndpointSlices, func(s *discoveryv1.EndpointSlice) bool {
					return s.Name == sliceName(observed, c.View, slice)
				})
				for j, endpoint := range result.EndpointSlices[at].Endpoints {
					conditions := slice.Endpoints[j].Conditions
					if want && isReady(slice.Endpoints[j]) {
						conditions = export.Conditions(false, true, true)
						demoted++
					}
					diff(t, fmt.Sprintf("cluster set %d, slice %s, endpoint %d", seed, slice.Name, j), endpoint.Conditions,
						conditions)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	if demoted < 100 {
		t.Errorf("%d endpoints were demoted", demoted)
	}
}
