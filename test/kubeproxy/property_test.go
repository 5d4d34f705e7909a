// SPDX-License-Identifier: Apache-2.0

package kubeproxy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// TestNeverABlackHole checks in random clustersets what kube-proxy chooses on each node: the nearest ready endpoints,
// any if there are none near, and none only if no endpoint is serving.
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

// randomView returns a view with up to four slices of two ports and two families. The second byte of its addresses is
// the number of the cluster, by age.
func randomView(r *rand.Rand, cluster string, created int) *export.View {
	view := exporttest.View(cluster, created, "p80:80/TCP p81:81/TCP", "", exporttest.Families(families...))
	view.Slices = nil
	for i := range 1 + r.IntN(4) {
		family, address := corev1.IPv4Protocol, "10.%d.%d.%d"
		if r.IntN(3) == 0 {
			family, address = corev1.IPv6Protocol, "fd00:%d::%d:%d"
		}
		slice := export.Slice{Name: fmt.Sprintf("web-%s-%d", cluster, i), AddressType: discoveryv1.AddressType(family)}
		for _, number := range pick(r, []int32{80}, []int32{81}, []int32{80, 81}) {
			slice.Targets = append(slice.Targets, export.Target{Protocol: corev1.ProtocolTCP, Number: number, Port: number})
		}
		for j := range r.IntN(5) {
			state := r.IntN(5) // 0: not serving; 1: serving and terminating; else ready
			endpoint := discoveryv1.Endpoint{
				Addresses:  []string{fmt.Sprintf(address, created, i+1, j+1)},
				Conditions: export.Conditions(state > 1, state > 0, state == 1),
				Zone:       pick(r, ptr.To("a"), ptr.To("b"), ptr.To("c"), ptr.To("d"), nil),
			}
			if cluster == "east" && r.IntN(3) > 0 {
				endpoint.NodeName = ptr.To(pick(r, "node-0", "node-1", "node-2"))
			}
			slice.Endpoints = append(slice.Endpoints, endpoint)
		}
		view.Slices = append(view.Slices, slice)
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

	// Including a node that the controller has not seen yet.
	zones := append([]string{"z"}, nodes.Zones...)
	if nodes.SomeWithoutZone || len(nodes.Zones) == 0 {
		zones = append(zones, "")
	}
	for _, zone := range zones {
		at := node{pick(r, "node-0", "node-1", "node-3"), zone}
		for port, got := range chosen(t, at, result) {
			name := fmt.Sprintf("clusterset %d, node %v, preference %+v, zones %v, port %v", seed, at, preference,
				nodes.Zones, port)
			checkChoice(t, name, preference, at, slices.Contains(nodes.Zones, zone),
				endpointsOf(result, port), got)
		}
	}
}

// An endpoint is an endpoint that serves a port.
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

// preference is the set of endpoints that clients of a service use first.
type preference struct{ Node, Zone, Cluster bool }

// checkChoice compares a choice with the preference. known: the controller knows the node's zone.
func checkChoice(t *testing.T, name string, preference preference, at node, known bool, all []endpoint, got []string) {
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
	own := those(all, func(e endpoint) bool { return e.ready && e.own })
	inZone := those(all, func(e endpoint) bool { return e.ready && e.zone == at.zone && at.zone != "" })
	here := those(all, func(e endpoint) bool { return e.ready && e.own && e.node == at.name })
	want := ready
	switch {
	case preference.Node && len(here) > 0:
		want = here
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

// A node is a node of this cluster with its zone, empty if it has none.
type node struct{ name, zone string }

// A port is a port of the Service in one family, for which kube-proxy makes a choice.
type port struct {
	number int32
	family corev1.IPFamily
}

// families are the families of all Services.
var families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}

// merged returns the stable result of merging the contributions in east.
func merged(t testing.TB, zones placement.Nodes, operator string, contributions []merge.Contribution) merge.Result {
	t.Helper()
	web := exporttest.Web
	observed := merge.Observed{
		Cluster: "east", Service: web, IPFamilies: families,
		ServiceExport: &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}},
	}
	observed.Place = placement.Here{
		Cluster: scope.Cluster{ID: "east"}, Properties: func(string) map[string]string { return nil },
		Prefer: operator, Nodes: zones,
	}.Of
	result := merge.Merge(observed, contributions)
	if result.DerivedService == nil {
		t.Fatal("there is no derived Service")
	}
	_, result.DerivedService = exporttest.Stored(nil, result.DerivedService)
	return result
}

// chosen returns the choice of a node's kube-proxy for each port: the sorted addresses to which a connection from the
// node may go.
func chosen(t testing.TB, at node, result merge.Result) map[port][]string {
	t.Helper()
	labels := map[string]string{}
	if at.zone != "" {
		labels[corev1.LabelTopologyZone] = at.zone
	}
	choice := map[port][]string{}
	for _, family := range families {
		endpointChanges := proxy.NewEndpointsChangeTracker(family, at.name, nil, nil)
		for _, slice := range result.EndpointSlices {
			endpointChanges.EndpointSliceUpdate(slice, false)
		}
		endpoints := proxy.EndpointsMap{}
		endpoints.Update(endpointChanges)
		serviceChanges := proxy.NewServiceChangeTracker(family, nil, nil)
		serviceChanges.Update(nil, result.DerivedService)
		services := proxy.ServicePortMap{}
		services.Update(serviceChanges)
		if len(services) == 0 {
			t.Fatalf("kube-proxy has no port of %v", result.DerivedService.Spec.Ports)
		}
		for name, service := range services {
			_, _, reachable, _ := proxy.CategorizeEndpoints(endpoints[name], service, at.name, labels)
			addresses := map[string]bool{}
			for _, endpoint := range reachable {
				addresses[endpoint.IP()] = true
			}
			choice[port{int32(service.Port()), family}] = slices.Sorted(maps.Keys(addresses))
		}
	}
	return choice
}
