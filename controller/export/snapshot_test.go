// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"
	"fmt"
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
				// As of a Service that publishes what is not ready.
				s.Endpoints[2].Conditions = discoveryv1.EndpointConditions{
					Ready: ptr.To(true), Serving: ptr.To(false),
					Terminating: ptr.To(true),
				}
			}),
		newSlice("web-6", "http:8080/TCP", "fd00::1"),
	)
}

// TestSnapshotText holds the format: another answer is another version.
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
		`"demoted":[{"endpoints":[0,3]},{"endpoints":[2],"serving":false,"terminating":true}]}}`
	diff(t, "annotations", NewEncoder(view).Annotations(slice, []int{0, 2, 3}), map[string]string{
		"snapshot.clusterset-dns.github.io/v1": want,
		// Kubernetes' key is what kube-proxy takes its SLI from.
		"clusterset-dns.github.io/last-change-trigger-time": "2026-03-01T12:00:00Z",
	})
}

// absent is the view of an export whose Service does not exist.
func absent(t testing.TB) *View {
	t.Helper()
	view, found, invalid := FromService("east", newExport(), nil, nil)
	if view == nil || !view.Absent() || len(found) > 0 || invalid == nil || invalid.Reason != "NoService" {
		t.Fatalf("FromService: %v %v %v", view, found, invalid)
	}
	return view
}

// TestAbsentText holds the format of a snapshot without a Service. A reader of before it was there refuses the slice,
// as it has no service: such a reader takes the export for withdrawn, as it did when there was no slice.
func TestAbsentText(t *testing.T) {
	view := absent(t)
	diff(t, "annotations", NewEncoder(view).Annotations(&view.Slices[0], nil), map[string]string{
		key1: `{"cluster":"east","absent":true,"slice":{"name":"` + SliceName("east", web, "", "IPv4") + `"}}`,
	})
	before := version{name: "v1", encoder: encoder1, decode: func(text string) (snapshot, error) {
		decoded, err := decode1(text)
		decoded.absent = false // an unknown field
		return decoded, err
	}}
	read, found := fromSlices(Source{Cluster: "east"}, web, publish(view), nil, []version{before})
	if read != nil {
		t.Errorf("read as %v", read)
	}
	diff(t, "problems", texts(found), []string{"BadSnapshot: EndpointSlice demo/" + view.Slices[0].Name +
		": it has no service"})
	// Nor does it keep endpoints that are gone.
	old := abroad(mustView(t, newExport(), newService("80/TCP"), newSlice("a", "8080/TCP", "10.1.0.1")))
	if read, _ = fromSlices(Source{Cluster: "east"}, web, publish(view), old, []version{before}); read != nil {
		t.Errorf("with what was known before it is read as %v", read)
	}
}

// TestAbsentAmongOthers: while a Service goes or comes back its export has
// slices of both kinds for a moment. Those of the Service count.
func TestAbsentAmongOthers(t *testing.T) {
	view, gone := mustView(t, newExport(), newService("80/TCP"), newSlice("a", "8080/TCP", "10.1.0.1"),
		newSlice("b", "8080/TCP", "10.1.0.2")), absent(t)
	read := func(previous *View, slices ...*discoveryv1.EndpointSlice) *View {
		view, _ := FromSlices(Source{Cluster: "east"}, web, slices, previous)
		return view
	}
	present, away := publish(view), publish(gone)
	one := *abroad(view)
	one.Slices = one.Slices[:1]
	diff(t, "both", read(nil, append(present[:1:1], away...)...), &one)
	diff(t, "the other order", read(nil, append(away[:1:1], present[0])...), &one)
	diff(t, "absent", read(abroad(view), away...), gone)

	// One that is refused stays as it was known.
	broken := present[1].DeepCopy()
	broken.Annotations[key1] = "{"
	two := *abroad(view)
	two.Slices = two.Slices[1:]
	diff(t, "a refused one besides", read(abroad(view), away[0], broken), &two)
	refused := away[0].DeepCopy()
	refused.Annotations[key1] = "{"
	diff(t, "refused", read(gone, refused), gone)
	diff(t, "refused, and one of a Service", read(gone, refused, present[0]), &one)
	if view := read(gone); view != nil {
		t.Errorf("with no slice: %v", view)
	}

	// What it holds besides counts for nothing.
	full := away[0].DeepCopy()
	full.Endpoints = present[0].Endpoints
	full.Annotations[key1] = strings.Replace(full.Annotations[key1], `"slice":{`,
		`"service":{"created":"x"},"slice":{"targets":[{"protocol":"TCP","port":80,"target":8080}],`, 1)
	diff(t, "with endpoints", read(nil, full), gone)
}

func TestRoundTrip(t *testing.T) {
	for name, view := range map[string]*View{
		"rich":  rich(t),
		"empty": mustView(t, newExport(), newService("80/TCP")),
		"no ports": mustView(t, newExport(), newService("", func(s *corev1.Service) { s.Spec.ClusterIP = "None" }),
			newSlice("a", "", "10.1.0.1")),
		"one port":  mustView(t, newExport(), newService("80/TCP"), newSlice("a", "8080/TCP", "10.1.0.1")),
		"absent":    absent(t),
		"no target": mustView(t, newExport(), newService("80/TCP"), newSlice("a", "", "10.1.0.1")),
	} {
		for demotion, demoted := range map[string][]int{"as it is": nil, "demoted": {0, 2, 3}} {
			t.Run(name+" "+demotion, func(t *testing.T) {
				read, found := FromSlices(Source{Cluster: "east"}, web, publish(view, demoted...), nil)
				diff(t, "problems", found, []Problem(nil))
				diff(t, "view", read, abroad(view))

				// The copy of the copy says the same, whatever it is named.
				copies := publish(read, demoted...)
				for _, slice := range copies {
					slice.Name = SliceName("east", web, slice.Name, slice.AddressType)
				}
				again, found := FromSlices(Source{Cluster: "east"}, web, copies, nil)
				diff(t, "problems of copies", found, []Problem(nil))
				diff(t, "view from copies", again, abroad(view))
			})
		}
	}
}

// next is a version as a later release might bring: it names a field anew.
var next = version{
	name: "v9",
	encoder: func(view *View) func(*Slice, []demotion) string {
		inner := encoder1(view)
		return func(slice *Slice, demoted []demotion) string {
			return string(marshal(map[string]json.RawMessage{"export": json.RawMessage(inner(slice, demoted))}))
		}
	},
	decode: func(text string) (snapshot, error) {
		var in map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			return snapshot{}, err
		}
		if in["export"] == nil {
			return snapshot{}, errors.New("it has no export")
		}
		return decode1(string(in["export"]))
	},
}

// TestNeighbouringVersions lets a release that writes v1 and one that writes v9
// and v1 read each other, and one that writes v9 alone be refused by the first.
func TestNeighbouringVersions(t *testing.T) {
	view := rich(t)
	releases := map[string][]version{"old": {version1}, "new": {next, version1}, "newest": {next}}
	written := func(versions []version) []*discoveryv1.EndpointSlice {
		slices := publish(view)
		for i, slice := range slices {
			slice.Annotations = newEncoder(view, versions).Annotations(&view.Slices[i], nil)
		}
		return slices
	}
	for _, test := range []struct{ writer, reader, want string }{
		{"old", "old", ""},
		{"new", "old", ""},
		{"old", "new", ""},
		{"new", "new", ""},
		{"newest", "new", ""},
		{"newest", "old", `its snapshot is of unknown version "v9"; upgrade this controller`},
		{"old", "newest", `its snapshot is of unknown version "v1"; upgrade this controller`},
	} {
		t.Run(test.writer+" read by "+test.reader, func(t *testing.T) {
			read, found := fromSlices(Source{Cluster: "east"}, web, written(releases[test.writer]), nil,
				releases[test.reader])
			if test.want == "" {
				diff(t, "problems", found, []Problem(nil))
				diff(t, "view", read, abroad(view))
				return
			}
			if read != nil {
				t.Errorf("a snapshot that is not understood was guessed: %v", read)
			}
			for _, problem := range found {
				if problem.Reason != ReasonUnknownVersion || problem.Message != test.want {
					t.Errorf("problem %v, want %s", problem, test.want)
				}
			}
			if len(found) != len(view.Slices) {
				t.Errorf("%d problems, want one for each of %d slices", len(found), len(view.Slices))
			}

			kept, _ := fromSlices(Source{Cluster: "east"}, web, written(releases[test.writer]), abroad(view),
				releases[test.reader])
			diff(t, "what was known before", kept, abroad(view))
		})
	}
}

// TestUnknownFields: a version may grow fields that older readers ignore.
func TestUnknownFields(t *testing.T) {
	view := mustView(t, newExport(), newService("80/TCP"), newSlice("a", "80/TCP", "10.1.0.1"))
	slices := publish(view)
	key := AnnotationSnapshotPrefix + "v1"
	for _, field := range []string{`"cluster":`, `"created":`, `"name":`, `"protocol":`, `"target":`} {
		text := slices[0].Annotations[key]
		if !strings.Contains(text, field) {
			t.Fatalf("%s has no %s", text, field)
		}
		slices[0].Annotations[key] = strings.ReplaceAll(text, field, `"later":{"a":[1]},`+field)
	}
	read, found := FromSlices(Source{Cluster: "east"}, web, slices, nil)
	diff(t, "problems", found, []Problem(nil))
	diff(t, "view", read, abroad(view))
}

// TestSRVIsNoSnapshot: readers, also those of the version before, find the snapshot next to an SRV annotation.
func TestSRVIsNoSnapshot(t *testing.T) {
	if !strings.HasPrefix(AnnotationSRV, AnnotationSnapshotPrefix) {
		t.Errorf("the controller of the version before does not remove %s", AnnotationSRV)
	}
	for name, view := range map[string]*View{
		"v1": mustView(t, newExport(), newService("80/TCP"), newSlice("a", "80/TCP", "10.1.0.1")),
		"v2": chosen(t, "west"),
	} {
		for _, known := range [][]version{{version2, version1}, {version1}} {
			slice := publish(view)[0]
			want, wantReason, wantErr := readSnapshot(slice.Annotations, known)
			slice.Annotations[AnnotationSRV] = "priority=2 weight=27 terminating=0,3"
			got, reason, err := readSnapshot(slice.Annotations, known)
			if got.cluster != want.cluster || string(got.specText) != string(want.specText) || reason != wantReason ||
				fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%s, %d versions known: %v %s %v, want %v %s %v", name, len(known), got, reason, err, want,
					wantReason, wantErr)
			}
			if read := err == nil; read != (name == "v1" || len(known) == 2) {
				t.Errorf("%s, %d versions known: read %t", name, len(known), read)
			}
		}
	}
}

// TestSnapshotSize keeps docs/design/snapshot.md true.
func TestSnapshotSize(t *testing.T) {
	view := mustView(t, newExport(), newService("http:80/TCP"), newSlice("a", "http:8080/TCP", "10.1.0.1"))
	text := publish(view)[0].Annotations[AnnotationSnapshotPrefix+"v1"]
	if len(text) < 300 || len(text) > 500 {
		t.Errorf("a typical snapshot has %d bytes: %s", len(text), text)
	}
}
