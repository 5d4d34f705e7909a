// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func TestParseSRV(t *testing.T) {
	for text, want := range map[string]string{
		"priority=2":                          "2 0 []",
		"weight=27":                           "0 27 []",
		"priority=255 weight=65535":           "255 65535 []",
		"weight=1 priority=3 terminating=0,7": "3 1 [0 7]",
		"terminating=999":                     "0 0 [999]",
		"":                                    "invalid", "priority": "invalid", "priority=": "invalid", "priority=256": "invalid",
		"priority=-1": "invalid", "priority=+1": "invalid", "priority=1 priority=1": "invalid", "weight=0": "invalid", "weight=65536": "invalid",
		"priority=1  weight=1": "invalid", "priority=1,weight=1": "invalid", "other=1": "invalid",
		"terminating=": "invalid", "terminating=1,1": "invalid", "terminating=2,1": "invalid",
		"terminating=1000": "invalid", "terminating=1,": "invalid", "priority=1 ": "invalid",
	} {
		priority, weight, terminating, ok := parseSRV(text)
		got := fmt.Sprint(priority, weight, terminating)
		if !ok {
			got = "invalid"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func FuzzSRV(f *testing.F) {
	for _, seed := range []string{"priority=2 weight=27 terminating=0,3", "weight=1", "priority=256", "terminating=1,,2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		priority, weight, terminating, ok := parseSRV(text)
		if !ok {
			if priority != 0 || weight != 0 || terminating != nil {
				t.Errorf("%q is not valid and is read as %v, %v, %v", text, priority, weight, terminating)
			}
			return
		}
		last := -1
		for _, i := range terminating {
			if i <= last || i > maxIndex {
				t.Fatalf("%q has the indices %v", text, terminating)
			}
			last = i
		}
		if e := sliceOf(text, ""); e.skips[InvalidSRV] > 0 || e.Priority != priority || weight > 0 && e.Weight != weight {
			t.Errorf("%q is read as %v, %v", text, e.Class, e.skips)
		}
	})
}

// sliceOf is a slice with the annotation and ports, whose endpoints are r(eady), s(erving and terminating) or n(ot usable).
func sliceOf(annotation, states string, ports ...discoveryv1.EndpointPort) *Endpoints {
	raw := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{mcsv1beta1.LabelSourceCluster: "east"},
			Annotations: map[string]string{AnnotationSRV: annotation},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: ports,
	}
	for i, state := range states {
		raw.Endpoints = append(raw.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.1.0.%d", i)},
			Conditions: discoveryv1.EndpointConditions{
				Ready: new(state == 'r'), Serving: new(state != 'n'), Terminating: new(state != 'r'),
			},
		})
	}
	return FromEndpointSlice(raw, false)
}

// TestWaiting: which endpoints are ready, wait (w), or terminate (t), in their order.
func TestWaiting(t *testing.T) {
	for _, test := range []struct{ annotation, states, want string }{
		{"", "srns", "r1 t0 t3"},
		{"priority=2", "srns", "r1 w0 w3"},
		{"priority=2 terminating=0", "srns", "r1 w3 t0"},
		{"priority=2 terminating=0,1,2,3", "srns", "r1 t0 t3"},
		{"weight=2", "ss", "w0 w1"},
		{"wait=2", "ss", "t0 t1"},
	} {
		e := sliceOf(test.annotation, test.states)
		var got []string
		for i := range e.Len() {
			state := "t"
			if e.condition(i) == ready {
				state = "r"
			} else if e.condition(i) == waiting {
				state = "w"
			}
			got = append(got, fmt.Sprintf("%s%d", state, e.Addr(i)[3]))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%q of %s: got %s, want %s", test.annotation, test.states, got, test.want)
		}
		if invalid := e.skips[InvalidSRV]; invalid > 0 != (test.annotation == "wait=2") {
			t.Errorf("%q: %d skipped", test.annotation, invalid)
		}
	}
}

// TestSizeOfEndpoints: slices are many, and annotations few.
func TestSizeOfEndpoints(t *testing.T) {
	if size := unsafe.Sizeof(Endpoints{}); size > 144 {
		t.Errorf("a slice takes %d octets and what it points to, more than the size class of 144", size)
	}
}
