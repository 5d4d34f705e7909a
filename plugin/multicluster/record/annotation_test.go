// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzSRV: no annotation causes a panic, or a target without weight, to which no client connects (RFC 2782).
func FuzzSRV(f *testing.F) {
	for _, seed := range []string{"priority=2 weight=27 terminating=0,3", "weight=1", "priority=256", "terminating=1,,2", "weight=0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := FromEndpointSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Annotations: map[string]string{AnnotationSRV: text}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}, false)
		if e.Weight == 0 {
			t.Errorf("%q is read as %v", text, e.Class)
		}
	})
}
