// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzDecode reads a slice that another cluster wrote. Whatever its content, the view is valid: it can be published
// again, and reads the same then, without a problem.
func FuzzDecode(f *testing.F) {
	f.Add(good, "10.1.0.1", "web-0", "zone-a", false)
	f.Add(good, "fd00::1", "", "", true)
	f.Add(publish(absent(f))[0].Annotations[AnnotationSnapshot], "10.1.0.1", "a", "b", false)
	for _, slice := range publish(rich(f), 0, 2) {
		f.Add(slice.Annotations[AnnotationSnapshot], slice.Endpoints[0].Addresses[0], "a", "b",
			slice.AddressType == discoveryv1.AddressTypeIPv6)
	}
	for _, clusters := range []string{"west", "region in (eu), tier", "north; *"} {
		for _, view := range []*View{chosen(f, clusters), absent(f, chosenBy(clusters))} {
			f.Add(view.Annotations(&view.Slices[0], nil)[AnnotationSnapshot], "10.1.0.1", "a", "b", false)
		}
	}
	f.Fuzz(func(t *testing.T, text, address, hostname, zone string, six bool) {
		reader := Source{Cluster: "east", Reader: inEU}
		slices := hostile(func(s *discoveryv1.EndpointSlice) {
			if six {
				s.AddressType = discoveryv1.AddressTypeIPv6
			}
			s.Annotations = map[string]string{AnnotationSnapshot: text, corev1.EndpointsLastChangeTriggerTime: zone}
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{address}, Hostname: &hostname,
				Zone: &zone,
			})
		})
		view, found, _ := FromSlices(reader, web, slices, nil)
		for _, problem := range found {
			if len(problem.Message) > maxMessage {
				t.Errorf("problem without bounds: %v", problem)
			}
		}
		if view == nil {
			decoded, err := readSnapshot(slices[0])
			forOthers := err == nil && decoded.clusters.String() != "" && !decoded.clusters.Selects(inEU, inEU)
			if len(found) == 0 && !forOthers {
				t.Error("a slice is refused without a problem")
			}
			return
		}
		if view.Cluster != "east" || len(view.Slices) != 1 ||
			len(validation.IsDNS1123Subdomain(view.Slices[0].Name)) > 0 {
			t.Errorf("view %v", view)
		}
		if !view.Absent() {
			for key := range view.Spec.Labels {
				if IsReservedKey(key) {
					t.Errorf("label %q", key)
				}
			}
		}
		again, found, _ := FromSlices(reader, web, publish(view), nil)
		if len(found) > 0 {
			t.Errorf("problems with what was found valid: %v", found)
		}
		diff(t, "view after it was published", again, view)
	})
}
