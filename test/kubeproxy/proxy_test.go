// SPDX-License-Identifier: Apache-2.0

package kubeproxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

var web = types.NamespacedName{Namespace: "demo", Name: "web"}

// A node is one of this cluster, with its zone, empty where it has none.
type node struct{ name, zone string }

// A port is what kube-proxy decides for: a port of the Service in one family.
type port struct {
	number int32
	family corev1.IPFamily
}

// newView is a cluster's export with the ports.
func newView(cluster string, created int, ports ...int32) *export.View {
	view := &export.View{Cluster: cluster, Service: web, Spec: &export.Spec{
		Created: time.Date(2026, 3, created, 12, 0, 0, 0, time.UTC), Type: v1beta1.ClusterSetIP,
		IPFamilies:      []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
		SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
	}}
	for _, number := range ports {
		view.Spec.Ports = append(view.Spec.Ports,
			export.Port{Name: fmt.Sprintf("p%d", number), Protocol: corev1.ProtocolTCP, Number: number})
	}
	return view
}

// add gives a view a slice with the ports and endpoints. Endpoints are a state (nothing for ready, "!" for not ready,
// "~" for serving and terminating), a zone ("-" for none) and a node, as in "a@node-1 !b ~-".
func add(view *export.View, family corev1.IPFamily, endpoints string, ports ...int32) {
	position := len(view.Slices)
	slice := export.Slice{
		Name: fmt.Sprintf("web-%s-%d", view.Cluster, position), AddressType: discoveryv1.AddressType(family),
	}
	for _, number := range ports {
		slice.Targets = append(slice.Targets, export.Target{Protocol: corev1.ProtocolTCP, Number: number, Port: number})
	}
	for i, field := range strings.Fields(endpoints) {
		zone := strings.TrimLeft(field, "!~")
		zone, name, _ := strings.Cut(zone, "@")
		endpoint := discoveryv1.Endpoint{Addresses: []string{addressOf(view.Cluster, family, position, i)}}
		switch field[0] {
		case '!':
			endpoint.Conditions = export.Conditions(false, false, false)
		case '~':
			endpoint.Conditions = export.Conditions(false, true, true)
		default:
			endpoint.Conditions = export.Conditions(true, true, false)
		}
		if zone != "-" {
			endpoint.Zone = ptr.To(zone)
		}
		if name != "" {
			endpoint.NodeName = ptr.To(name)
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	view.Slices = append(view.Slices, slice)
}

// addressOf begins with a number that tells the cluster.
func addressOf(cluster string, family corev1.IPFamily, slice, i int) string {
	number := map[string]int{"east": 1, "west": 2, "north": 3}[cluster]
	if family == corev1.IPv6Protocol {
		return fmt.Sprintf("fd00:%d::%d:%d", number, slice+1, i+1)
	}
	return fmt.Sprintf("10.%d.%d.%d", number, slice, i+1)
}

// merged is what east makes of the contributions, at rest.
func merged(t testing.TB, zones placement.Nodes, operator string, contributions []merge.Contribution) merge.Result {
	t.Helper()
	observed := merge.Observed{
		Cluster: "east", Service: web,
		IPFamilies:    []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
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
	result.DerivedService.Spec.ClusterIPs = []string{"10.96.0.1", "fd00:96::1"}
	result.DerivedService.Spec.ClusterIP = "10.96.0.1"
	return result
}

// chosen is what the kube-proxy of a node chooses for each port: the sorted
// addresses that a connection from there may go to.
func chosen(t testing.TB, at node, result merge.Result) map[port][]string {
	t.Helper()
	labels := map[string]string{}
	if at.zone != "" {
		labels[corev1.LabelTopologyZone] = at.zone
	}
	choice := map[port][]string{}
	for _, family := range []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol} {
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
