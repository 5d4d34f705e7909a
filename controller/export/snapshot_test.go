// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// rich is a view that uses every field.
func rich(t testing.TB) *View {
	return mustView(t,
		newExport(func(e *v1beta1.ServiceExport) {
			e.Spec.ExportedLabels = map[string]string{"team": "red"}
			e.Spec.ExportedAnnotations = map[string]string{"note": `<"é">`}
		}),
		newService("http:80/TCP dns:53/UDP", func(s *corev1.Service) {
			s.Spec.Ports[0].AppProtocol = ptr.To("http")
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](60)},
			}
			s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
			s.Spec.TrafficDistribution = ptr.To("PreferSameZone")
		}),
		newSlice("web-4", "http:8080/TCP dns:53/UDP", "10.1.0.1 !10.1.0.2 10.1.0.3 10.1.0.4",
			func(s *discoveryv1.EndpointSlice) {
				s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-03-01T12:00:00Z"}
				s.Endpoints[0].Hostname = ptr.To("web-0")
				// As of a Service with publishNotReadyAddresses.
				s.Endpoints[2].Conditions = discoveryv1.EndpointConditions{
					Ready: ptr.To(true), Serving: ptr.To(false),
					Terminating: ptr.To(true),
				}
			}),
		newSlice("web-6", "http:8080/TCP", "fd00::1"),
	)
}

// TestSnapshotText fixes the format: another text needs another version.
func TestSnapshotText(t *testing.T) {
	view := rich(t)
	slice := &view.Slices[0]
	if slice.AddressType == discoveryv1.AddressTypeIPv6 {
		slice = &view.Slices[1]
	}
	want := `{"cluster":"east","service":{"created":"2026-03-01T12:00:00Z","type":"ClusterSetIP",` +
		`"ports":[{"name":"http","protocol":"TCP","port":80,"appProtocol":"http"},{"name":"dns","protocol":"UDP","port":53}],` +
		`"ipFamilies":["IPv6","IPv4"],"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":60}},` +
		`"internalTrafficPolicy":"Local","trafficDistribution":"PreferSameZone","labels":{"team":"red"},"annotations":{"note":"<\"é\">"}},` +
		`"slice":{"name":"` + slice.Name +
		`","targets":[{"protocol":"TCP","port":80,"target":8080},{"protocol":"UDP","port":53,"target":53}],` +
		`"demoted":[0,2,3]}}`
	diff(t, "annotations", view.Annotations(slice, []int{0, 2, 3}), map[string]string{
		"snapshot.clusterset-dns.github.io/v1": want,
		// Kubernetes' key is what kube-proxy takes its SLI from.
		"clusterset-dns.github.io/last-change-trigger-time": "2026-03-01T12:00:00Z",
	})
}

// absent is the view of an export whose Service does not exist.
func absent(t testing.TB, change ...func(*v1beta1.ServiceExport)) *View {
	t.Helper()
	view, found, invalid := FromService(Exporter{Cluster: "east"}, newExport(change...), nil, nil)
	if view == nil || !view.Absent() || len(found) > 0 || invalid == nil || invalid.Reason != "NoService" {
		t.Fatalf("FromService: %v %v %v", view, found, invalid)
	}
	return view
}

// TestAbsentText fixes the format of a snapshot without a Service, for chosen clusters and for all.
func TestAbsentText(t *testing.T) {
	for clusters, view := range map[string]*View{
		``: absent(t), `"clusters":"west; region in (eu)",`: absent(t, chosenBy("west; region in (eu)")),
	} {
		diff(t, "annotations", view.Annotations(&view.Slices[0], nil), map[string]string{
			AnnotationSnapshot: `{"cluster":"east",` + clusters + `"absent":true,"slice":{"name":"` + SliceName("east", web, "", "IPv4") + `"}}`,
		})
	}
}

// TestAbsentAmongOthers: while a Service is deleted or created again, its export has slices of both kinds for a moment.
// The slices of the Service count.
func TestAbsentAmongOthers(t *testing.T) {
	view, gone := mustView(t, newExport(), newService("80/TCP"), newSlice("a", "8080/TCP", "10.1.0.1"),
		newSlice("b", "8080/TCP", "10.1.0.2")), absent(t)
	read := func(copies []*discoveryv1.EndpointSlice, slices ...*discoveryv1.EndpointSlice) *View {
		view, _, _ := FromSlices(Source{Cluster: "east"}, web, slices, copies)
		return view
	}
	present, away := publish(view), publish(gone)
	one := *abroad(view)
	one.Slices = one.Slices[:1]
	diff(t, "both", read(nil, append(present[:1:1], away...)...), &one)
	diff(t, "the other order", read(nil, append(away[:1:1], present[0])...), &one)
	diff(t, "absent", read(copied(view), away...), gone)

	// The copy of a refused slice stays.
	broken := present[1].DeepCopy()
	broken.Annotations[AnnotationSnapshot] = "{"
	two := *abroad(view)
	two.Slices = two.Slices[1:]
	diff(t, "a refused one besides", read(copied(view), away[0], broken), &two)
	refused := away[0].DeepCopy()
	refused.Annotations[AnnotationSnapshot] = "{"
	diff(t, "refused", read(copied(gone), refused), gone)
	diff(t, "refused, and one of a Service", read(copied(gone), refused, present[0]), &one)
	if view := read(copied(gone)); view != nil {
		t.Errorf("with no slice: %v", view)
	}

	// Other parts of an absent slice are ignored.
	full := away[0].DeepCopy()
	full.Endpoints = present[0].Endpoints
	full.Annotations[AnnotationSnapshot] = strings.Replace(full.Annotations[AnnotationSnapshot], `"slice":{`,
		`"service":{"type":"x"},"slice":{"targets":[{"protocol":"TCP","port":80,"target":8080}],`, 1)
	diff(t, "with endpoints", read(nil, full), gone)
}
