// SPDX-License-Identifier: Apache-2.0

package kubeproxy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
)

// TestNeverABlackHole checks in random clustersets what kube-proxy chooses on each node: the nearest ready endpoints,
// all where there are none near, and nothing only where nothing serves.
func TestNeverABlackHole(t *testing.T) {
	t.Parallel()
	const cases, parts = 8000, 4
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < cases && !t.Failed(); seed += parts {
				checkChoices(t, uint64(seed))
			}
		})
	}
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// randomView has up to four slices of two ports and two families.
func randomView(r *rand.Rand, cluster string, created int) *export.View {
	view := newView(cluster, created, 80, 81)
	for range 1 + r.IntN(4) {
		var endpoints []string
		for range r.IntN(5) {
			endpoint := pick(r, "", "", "", "!", "~") + pick(r, "a", "b", "c", "d", "-")
			if cluster == "east" && r.IntN(3) > 0 {
				endpoint += pick(r, "@node-0", "@node-1", "@node-2")
			}
			endpoints = append(endpoints, endpoint)
		}
		add(view, pick(r, corev1.IPv4Protocol, corev1.IPv4Protocol, corev1.IPv6Protocol), strings.Join(endpoints, " "),
			pick(r, []int32{80}, []int32{81}, []int32{80, 81})...)
	}
	return view
}

func checkChoices(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	east := randomView(r, "east", 1)
	contributions := []merge.Contribution{{View: east, Demote: r.IntN(6) == 0}}
	for i, cluster := range []string{"west", "north"} {
		if r.IntN(4) > 0 {
			contributions = append(contributions,
				merge.Contribution{View: randomView(r, cluster, 2+i), Demote: r.IntN(4) == 0})
		}
	}
	east.Spec.TrafficDistribution = pick(r, "", "", corev1.ServiceTrafficDistributionPreferClose,
		corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
	east.Spec.Annotations = pick(r, nil,
		map[string]string{export.AnnotationPrefer: pick(r, "cluster", "cluster", "none")})
	operator := pick(r, "", placement.PreferCluster)
	nodes := placement.Nodes{
		Zones: pick(r, nil, []string{"a"}, []string{"a", "b"}, []string{"a", "b", "e"},
			strings.Split("abcdefgh", ""), strings.Split("abcdefghi", "")),
		SomeWithoutZone: r.IntN(3) == 0,
	}
	result := merged(t, nodes, operator, contributions)
	asked := east.Spec.Annotations[export.AnnotationPrefer]
	preference := preference{
		Node: east.Spec.TrafficDistribution == corev1.ServiceTrafficDistributionPreferSameNode,
		Zone: east.Spec.TrafficDistribution != "" && len(nodes.Zones) > 0,
		Cluster: nodes.CanPreferCluster() && (asked == placement.PreferCluster ||
			asked == "" && east.Spec.TrafficDistribution == "" && operator == placement.PreferCluster),
	}

	// Also a node that the controller has not seen yet.
	zones := append([]string{"z"}, nodes.Zones...)
	if nodes.SomeWithoutZone || len(nodes.Zones) == 0 {
		zones = append(zones, "")
	}
	for _, zone := range zones {
		at := node{pick(r, "node-0", "node-1", "node-3"), zone}
		for port, got := range chosen(t, at, result) {
			name := fmt.Sprintf("clusterset %d, node %v, preference %+v, zones %v, port %v", seed, at, preference,
				nodes.Zones, port)
			checkChoice(t, name, preference, at, slices.Contains(nodes.Zones, zone), contributions[0].Demote,
				endpointsOf(result, port), got)
		}
	}
}

// An endpoint is one that serves a port.
type endpoint struct {
	address, zone, node string
	own                 bool
	ready, terminating  bool
}

func endpointsOf(result merge.Result, port port) []endpoint {
	var all []endpoint
	for _, slice := range result.EndpointSlices {
		if slice.AddressType != discoveryv1.AddressType(port.family) ||
			!slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return *p.Port == port.number }) {
			continue
		}
		for _, e := range slice.Endpoints {
			all = append(all, endpoint{
				address: e.Addresses[0], zone: ptr.Deref(e.Zone, ""), node: ptr.Deref(e.NodeName, ""),
				own:   slice.Labels[export.LabelSourceCluster] == "east",
				ready: *e.Conditions.Ready, terminating: *e.Conditions.Serving && *e.Conditions.Terminating,
			})
		}
	}
	return all
}

func those(all []endpoint, match func(endpoint) bool) []string {
	var addresses []string
	for _, each := range all {
		if match(each) {
			addresses = append(addresses, each.address)
		}
	}
	slices.Sort(addresses)
	return addresses
}

// preference is what clients of a service use first.
type preference struct{ Node, Zone, Cluster bool }

// checkChoice compares a choice with the preference. known tells that the node's zone is one of ours, drained that the
// own endpoints are demoted where they can be.
func checkChoice(t *testing.T, name string, preference preference, at node, known, drained bool,
	all []endpoint, got []string,
) {
	t.Helper()
	ready := those(all, func(e endpoint) bool { return e.ready })
	if len(ready) == 0 {
		if want := those(all, func(e endpoint) bool { return e.terminating }); !slices.Equal(got, want) {
			t.Errorf("%s: none is ready: got %v, want %v", name, got, want)
		}
		return
	}
	if len(got) == 0 ||
		slices.ContainsFunc(got, func(address string) bool { return !slices.Contains(ready, address) }) {
		t.Errorf("%s: got %v of the ready %v", name, got, ready)
		return
	}
	if drained && preference.Zone {
		return // which zones have none depends on the drain
	}
	own := those(all, func(e endpoint) bool { return e.ready && e.own })
	inZone := those(all, func(e endpoint) bool { return e.ready && e.zone == at.zone && at.zone != "" })
	ownInZone := those(all, func(e endpoint) bool { return e.ready && e.own && e.zone == at.zone && at.zone != "" })
	here := those(all, func(e endpoint) bool { return e.ready && e.own && e.node == at.name })
	want := ready
	switch {
	case preference.Node && len(here) > 0:
		want = here
	case preference.Cluster && preference.Zone && known && len(ownInZone) > 0:
		// Others of the cluster may be hinted for the zone, because of another port that has nothing there.
		for _, address := range got {
			if !slices.Contains(own, address) {
				t.Errorf("%s: %s is of another cluster", name, address)
			}
		}
		for _, address := range ownInZone {
			if !slices.Contains(got, address) {
				t.Errorf("%s: %s of the zone is missing in %v", name, address, got)
			}
		}
		return
	case preference.Cluster && known && len(own) > 0:
		want = own
	case preference.Cluster:
	case preference.Zone && len(inZone) > 0:
		want = inZone
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}
