// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestEqualSlice: a slice is written for each change of what the controller decides, and for nothing else.
func TestEqualSlice(t *testing.T) {
	type endpoint = discoveryv1.Endpoint
	first := func(change func(*endpoint)) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) { change(&s.Endpoints[0]) }
	}
	for name, test := range map[string]struct {
		change func(*discoveryv1.EndpointSlice)
		equal  bool
	}{
		"nothing":           {func(*discoveryv1.EndpointSlice) {}, true},
		"its version":       {func(s *discoveryv1.EndpointSlice) { s.ResourceVersion = "7" }, true},
		"none are empty":    {first(func(e *endpoint) { e.DeprecatedTopology = map[string]string{} }), true},
		"a label":           {func(s *discoveryv1.EndpointSlice) { s.Labels = map[string]string{"a": "b"} }, false},
		"an owner":          {func(s *discoveryv1.EndpointSlice) { s.OwnerReferences[0].UID = "2" }, false},
		"no controller":     {func(s *discoveryv1.EndpointSlice) { s.OwnerReferences[0].Controller = nil }, false},
		"a blocking owner":  {func(s *discoveryv1.EndpointSlice) { s.OwnerReferences[0].BlockOwnerDeletion = ptr.To(true) }, false},
		"the address type":  {func(s *discoveryv1.EndpointSlice) { s.AddressType = "IPv6" }, false},
		"an endpoint":       {func(s *discoveryv1.EndpointSlice) { s.Endpoints = append(s.Endpoints, s.Endpoints[0]) }, false},
		"a port":            {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = ptr.To(int32(81)) }, false},
		"the protocol":      {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Protocol = ptr.To(corev1.ProtocolUDP) }, false},
		"the application":   {func(s *discoveryv1.EndpointSlice) { s.Ports[0].AppProtocol = ptr.To("http") }, false},
		"the name of ports": {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = ptr.To("http") }, false},
		"an address":        {first(func(e *endpoint) { e.Addresses = []string{"10.0.0.2"} }), false},
		"ready":             {first(func(e *endpoint) { e.Conditions.Ready = ptr.To(false) }), false},
		"serving":           {first(func(e *endpoint) { e.Conditions.Serving = ptr.To(false) }), false},
		"terminating":       {first(func(e *endpoint) { e.Conditions.Terminating = ptr.To(true) }), false},
		"a host name":       {first(func(e *endpoint) { e.Hostname = ptr.To("web-0") }), false},
		"a node":            {first(func(e *endpoint) { e.NodeName = ptr.To("node-2") }), false},
		"no zone":           {first(func(e *endpoint) { e.Zone = nil }), false},
		"a pod":             {first(func(e *endpoint) { e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "web-1"} }), false},
		"a zone of hints":   {first(func(e *endpoint) { e.Hints.ForZones[0].Name = "b" }), false},
		"a node of hints":   {first(func(e *endpoint) { e.Hints.ForNodes = []discoveryv1.ForNode{{Name: "node-1"}} }), false},
		"no hints":          {first(func(e *endpoint) { e.Hints = nil }), false},
	} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "1", Controller: ptr.To(true)}}},
			AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To(int32(80))}},
			Endpoints: []endpoint{{
				Addresses: []string{"10.0.0.1"}, NodeName: ptr.To("node-1"), Zone: ptr.To("a"),
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true)},
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: "web-0"},
				Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}},
			}},
		}
		other := slice.DeepCopy()
		if test.change(other); equalSlice(slice, other) != test.equal {
			t.Errorf("%s: equal %t", name, !test.equal)
		}
	}
	for of, compared := range map[reflect.Type]int{
		reflect.TypeFor[endpoint](): 8, reflect.TypeFor[discoveryv1.EndpointConditions](): 3,
		reflect.TypeFor[discoveryv1.EndpointHints](): 2, reflect.TypeFor[discoveryv1.EndpointPort](): 4,
		reflect.TypeFor[metav1.OwnerReference](): 6,
	} {
		if of.NumField() != compared {
			t.Errorf("%s has %d fields, of which %d are compared", of, of.NumField(), compared)
		}
	}
}
