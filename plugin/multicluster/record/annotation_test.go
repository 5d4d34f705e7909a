// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		e := FromEndpointSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Annotations: map[string]string{AnnotationSRV: text}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}, false)
		if e.skips[InvalidSRV] > 0 || e.Priority != priority || weight > 0 && e.Weight != weight {
			t.Errorf("%q is read as %v, %v", text, e.Class, e.skips)
		}
	})
}
