// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

const twoPorts = "http:80/TCP metrics:9090/TCP"

// TestOwnSlices compares the last of some states with what a whole view has.
func TestOwnSlices(t *testing.T) {
	first := newSlice("web-1", twoPorts, "10.0.0.1 !10.0.0.2")
	view := mustView(t, newExport(), newService(twoPorts), first)
	for name, test := range map[string]struct {
		next *discoveryv1.EndpointSlice
		want bool
	}{
		"other endpoints": {newSlice("web-1", twoPorts, "!10.0.0.1 10.0.0.3"), true},
		"no endpoints":    {newSlice("web-1", twoPorts, ""), true},
		"one port":        {newSlice("web-1", "http:80/TCP", "10.0.0.1"), true},
		"a bad address":   {newSlice("web-1", twoPorts, "10.0.0.1 127.0.0.1"), false},
		"not of Kubernetes": {newSlice("web-1", twoPorts, "10.0.0.1", func(s *discoveryv1.EndpointSlice) {
			s.Labels[LabelSourceCluster] = "west"
		}), false},
	} {
		got, ok := OwnSlices(view, []*discoveryv1.EndpointSlice{first, test.next})
		if ok != test.want {
			t.Errorf("%s: %t", name, ok)
		}
		if ok {
			want := mustView(t, newExport(), newService(twoPorts), test.next)
			diff(t, name, got, []Slice{view.Slices[0], want.Slices[0]})
		}
	}
	if _, ok := OwnSlices(view, nil); ok {
		t.Error("a slice without a state")
	}
}

// TestPublishedSlices does the same for slices of a member.
func TestPublishedSlices(t *testing.T) {
	published := func(ports, endpoints string, change ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		slice := publish(mustView(t, newExport(), newService(ports), newSlice("web-1", ports, endpoints)))[0]
		for _, c := range change {
			c(slice)
		}
		return slice
	}
	first := published(twoPorts, "10.0.0.1")
	from := Source{Cluster: first.Labels[LabelSourceCluster]}
	view, _ := FromSlices(from, web, []*discoveryv1.EndpointSlice{first}, nil)
	for name, test := range map[string]struct {
		next *discoveryv1.EndpointSlice
		want bool
	}{
		"other endpoints": {published(twoPorts, "!10.0.0.1 10.0.0.3"), true},
		"no endpoints":    {published(twoPorts, ""), true},
		"another port":    {published(twoPorts+" dns:53/UDP", "10.0.0.1"), false},
		"a bad address": {published(twoPorts, "10.0.0.1", func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Addresses = []string{"127.0.0.1"}
		}), false},
		"a bad zone": {published(twoPorts, "10.0.0.1", func(s *discoveryv1.EndpointSlice) {
			s.Endpoints[0].Zone = ptr.To("/")
		}), false},
		"no snapshot": {published(twoPorts, "10.0.0.1", func(s *discoveryv1.EndpointSlice) { s.Annotations = nil }), false},
		"of another cluster": {published(twoPorts, "10.0.0.1", func(s *discoveryv1.EndpointSlice) {
			s.Labels[LabelSourceCluster] = "north"
		}), false},
		"of another writer": {published(twoPorts, "10.0.0.1", func(s *discoveryv1.EndpointSlice) {
			delete(s.Labels, LabelSliceManagedBy)
		}), false},
		"its Service is gone": {publish(absent(t))[0], false},
	} {
		got, ok := PublishedSlices(from, web, view.Spec, []*discoveryv1.EndpointSlice{first, test.next})
		if ok != test.want {
			t.Errorf("%s: %t", name, ok)
		}
		if ok {
			want, _ := FromSlices(from, web, []*discoveryv1.EndpointSlice{test.next}, nil)
			diff(t, name, got, []Slice{view.Slices[0], want.Slices[0]})
		}
	}
	if _, ok := PublishedSlices(from, web, view.Spec, nil); ok {
		t.Error("a slice without a state")
	}
	// A target without a port of the Service is left out, as in a view.
	fewer := *view.Spec
	fewer.Ports = fewer.Ports[:1]
	if got, ok := PublishedSlices(from, web, &fewer, []*discoveryv1.EndpointSlice{first}); !ok || len(got[0].Targets) != 1 {
		t.Errorf("got %v, %t", got, ok)
	}
}
