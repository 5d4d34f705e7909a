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
		"priority=2":                          "2 0 map[]",
		"priority=255 weight=65535":           "255 65535 map[]",
		"weight=1 priority=3 terminating=0,7": "3 1 map[0:true 7:true]",
		"":                                    "invalid", "priority": "invalid", "priority=256": "invalid", "priority=-1": "invalid",
		"weight=65536": "invalid", "priority=1  weight=1": "invalid", "other=1": "invalid",
		"terminating=": "invalid", "terminating=,1": "invalid", "terminating=1,": "invalid",
	} {
		priority, weight, terminating, err := parseSRV(text)
		got := fmt.Sprint(priority, weight, terminating)
		if err != nil {
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
		priority, weight, _, err := parseSRV(text)
		e := FromEndpointSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Annotations: map[string]string{AnnotationSRV: text}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}, false)
		if valid := err == nil || text == ""; (e.skips[InvalidSRV] == 0) != valid || e.Priority != priority || weight > 0 && e.Weight != weight {
			t.Errorf("%q is read as %v, %v", text, e.Class, e.skips)
		}
	})
}
