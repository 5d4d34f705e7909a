// SPDX-License-Identifier: Apache-2.0

package export

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apidiff "k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

var web = types.NamespacedName{Namespace: "demo", Name: "web"}

var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newExport(change ...func(*v1beta1.ServiceExport)) *v1beta1.ServiceExport {
	e := &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: web.Namespace, Name: web.Name, CreationTimestamp: metav1.NewTime(created.Local()),
	}}
	for _, c := range change {
		c(e)
	}
	return e
}

// newService is a Service as the API server returns it. ports are as in "http:80/TCP dns:53/UDP".
func newService(ports string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name},
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceTypeClusterIP,
			ClusterIP:             "10.96.0.7",
			ClusterIPs:            []string{"10.96.0.7"},
			IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol},
			SessionAffinity:       corev1.ServiceAffinityNone,
			InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}
	for _, text := range strings.Fields(ports) {
		name, number, protocol := parsePort(text)
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name, Port: number, Protocol: protocol})
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// newSlice is an EndpointSlice as the Kubernetes controller makes it.
// Endpoints are addresses, with "!" before those that are not ready.
func newSlice(name, ports, endpoints string, change ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: web.Namespace, Name: name,
			Labels: map[string]string{
				LabelKubernetesService: web.Name,
				LabelSliceManagedBy:    "endpointslice-controller.k8s.io",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, text := range strings.Fields(ports) {
		name, number, protocol := parsePort(text)
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Port: &number, Protocol: &protocol})
	}
	for _, text := range strings.Fields(endpoints) {
		address, unready := strings.CutPrefix(text, "!")
		if strings.Contains(address, ":") {
			s.AddressType = discoveryv1.AddressTypeIPv6
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address},
			Conditions: discoveryv1.EndpointConditions{
				Ready: ptr.To(!unready), Serving: ptr.To(!unready),
				Terminating: ptr.To(false),
			},
			NodeName:  ptr.To("node-1"),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: web.Namespace, Name: "web-" + address},
			Zone:      ptr.To("zone-a"),
			Hints:     &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-a"}}},
		})
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func labelled(key, value string) func(*discoveryv1.EndpointSlice) {
	return func(s *discoveryv1.EndpointSlice) { s.Labels[key] = value }
}

// parsePort reads "http:80/TCP" or "80/TCP".
func parsePort(text string) (string, int32, corev1.Protocol) {
	name, rest, named := strings.Cut(text, ":")
	if !named {
		name, rest = "", text
	}
	digits, protocol, _ := strings.Cut(rest, "/")
	number, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		panic(err)
	}
	return name, int32(number), corev1.Protocol(protocol)
}

// publish is the slices by which a cluster publishes a view. demoted endpoints have the conditions that a merge sets.
func publish(view *View, demoted ...int) []*discoveryv1.EndpointSlice {
	var published []*discoveryv1.EndpointSlice
	for i := range view.Slices {
		slice := &view.Slices[i]
		object := (&discoveryv1.EndpointSlice{AddressType: slice.AddressType, Endpoints: slice.Endpoints}).DeepCopy()
		object.Namespace, object.Name = view.Service.Namespace, slice.Name
		object.Labels = map[string]string{
			LabelService: view.Service.Name, LabelSourceCluster: view.Cluster, LabelSliceManagedBy: Manager,
		}
		var indices []int
		for _, d := range demoted {
			if d < len(object.Endpoints) {
				object.Endpoints[d].Conditions = Conditions(false, true, true)
				indices = append(indices, d)
			}
		}
		object.Annotations = view.Annotations(slice, indices)
		published = append(published, object)
	}
	return published
}

// copied is the copies of a view in another cluster.
func copied(view *View, demoted ...int) []*discoveryv1.EndpointSlice {
	copies := publish(view, demoted...)
	for _, slice := range copies {
		slice.Name = SliceName(view.Cluster, view.Service, slice.Name, slice.AddressType)
	}
	return copies
}

// abroad is the view as another cluster should see it.
func abroad(view *View) *View {
	seen := *view
	seen.Slices = nil
	for _, slice := range view.Slices {
		var endpoints []discoveryv1.Endpoint
		for _, endpoint := range slice.Endpoints {
			endpoint.NodeName, endpoint.TargetRef = nil, nil
			endpoints = append(endpoints, endpoint)
		}
		slice.Endpoints = endpoints
		seen.Slices = append(seen.Slices, slice)
	}
	return &seen
}

// mustView is the view of an export. It checks that no input is changed, and that slices are sorted.
func mustView(t testing.TB, e *v1beta1.ServiceExport, s *corev1.Service, all ...*discoveryv1.EndpointSlice) *View {
	t.Helper()
	inputs := string(marshal([]any{e, s, all}))
	view, found, invalid := FromService(Exporter{Cluster: "east"}, e, s, all)
	if invalid != nil || len(found) > 0 {
		t.Fatalf("FromService: %v %v", invalid, found)
	}
	if !slices.IsSortedFunc(view.Slices, func(a, b Slice) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("slices are not sorted: %v", view.Slices)
	}
	if now := string(marshal([]any{e, s, all})); now != inputs {
		t.Errorf("the inputs became %s", now)
	}
	return view
}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s (-want +got):\n%s", what, apidiff.Diff(want, got))
	}
}

// texts are the problems as "reason: sentence".
func texts(found []Problem) []string {
	var all []string
	for _, problem := range found {
		all = append(all, string(problem.Reason)+": "+problem.String())
	}
	return all
}

// lines are the slices of a view, each its address type and what slicesText has, sorted.
func lines(view *View) (all []string) {
	for _, slice := range view.Slices {
		all = append(all, strings.TrimSpace(string(slice.AddressType)+" "+slicesText(slice)))
	}
	slices.Sort(all)
	return all
}
