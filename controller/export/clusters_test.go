// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// Readers of exports of cluster east.
var (
	inEU    = scope.Cluster{ID: "west", Properties: map[string]string{"region": "eu"}}
	inUS    = scope.Cluster{ID: "north", Properties: map[string]string{"region": "us"}}
	readers = []scope.Cluster{inEU, inUS, {ID: "south", Properties: map[string]string{}}}
)

func chosenBy(clusters string) func(*v1beta1.ServiceExport) {
	return func(e *v1beta1.ServiceExport) { e.Annotations = map[string]string{AnnotationClusters: clusters} }
}

// chosen is the view of an export for chosen clusters.
func chosen(t testing.TB, clusters string) *View {
	return mustView(t, newExport(chosenBy(clusters)), newService("80/TCP"), newSlice("a", "8080/TCP", "10.1.0.1"),
		newSlice("b", "8080/TCP", "10.1.0.2"))
}

// absentFor is the view of such an export whose Service does not exist.
func absentFor(t testing.TB, clusters string) *View {
	t.Helper()
	view, _, _ := FromService(Exporter{Cluster: "east"}, newExport(chosenBy(clusters)), nil, nil)
	if view == nil || !view.Absent() {
		t.Fatalf("FromService: %v", view)
	}
	return view
}

// TestChosenText holds the format of a snapshot for chosen clusters.
func TestChosenText(t *testing.T) {
	view := absentFor(t, "west; region in (eu)")
	diff(t, "annotations", NewEncoder(view).Annotations(&view.Slices[0], nil), map[string]string{
		AnnotationSnapshot: `{"cluster":"east","clusters":"west; region in (eu)","absent":true,"slice":{"name":"` +
			view.Slices[0].Name + `"}}`,
	})
}

// TestChosenClusters: chosen clusters read the same as from an export for all, also from copies. For the
// others, the export does not exist, whatever they knew before.
func TestChosenClusters(t *testing.T) {
	all := mustView(t, newExport(), newService("80/TCP"), newSlice("a", "8080/TCP", "10.1.0.1"),
		newSlice("b", "8080/TCP", "10.1.0.2"))
	if text := ClustersOf(publish(all)[0]) + ClustersOf(&discoveryv1.EndpointSlice{}); text != "" {
		t.Errorf("an export for all is for %q", text)
	}
	for clusters, want := range map[string]string{
		"west": "west", "west;south": "west south", "region=us": "north", "region in (eu, us)": "west north",
		"!region": "south", "nobody": "", "*": "west north south", "nobody; *": "west north south",
	} {
		for kind, view := range map[string]*View{"present": chosen(t, clusters), "absent": absentFor(t, clusters)} {
			var got []string
			for _, reader := range readers {
				from := Source{Cluster: "east", Reader: reader}
				read, found := FromSlices(from, web, publish(view), abroad(all))
				diff(t, clusters+": problems", found, []Problem(nil))
				if read == nil {
					continue
				}
				got = append(got, reader.ID)
				diff(t, clusters+": "+kind, read, abroad(view))
				copies := publish(read)
				for _, slice := range copies {
					slice.Name = SliceName("east", web, slice.Name, slice.AddressType)
				}
				again, found := FromSlices(from, web, copies, nil)
				diff(t, clusters+": problems of copies", found, []Problem(nil))
				diff(t, clusters+": copies", again, abroad(view))
				if clusters != "*" && clusters != "nobody; *" {
					// The copies say whom they are for, so that they are judged again when properties change.
					if nobody, _ := FromSlices(Source{Cluster: "east", Reader: scope.Cluster{
						ID:         "x",
						Properties: map[string]string{"region": "x"},
					}}, web, copies, nil); nobody != nil {
						t.Errorf("%s: copies are read as %v", clusters, nobody)
					}
				}
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("%s: %s is for %q, want %q", clusters, kind, got, want)
			}
			if strings.Contains(clusters, "*") {
				continue
			}
			if text := ClustersOf(publish(view)[0]); text != clusters {
				t.Errorf("%s: a slice is for %q", clusters, text)
			}
		}
	}
}

// TestChosenAmongOthers: while an export changes, each slice is for those that it says.
func TestChosenAmongOthers(t *testing.T) {
	wide, narrow := chosen(t, "west; north"), chosen(t, "north")
	mixed := []*discoveryv1.EndpointSlice{publish(wide)[0], publish(narrow)[1]}
	for _, test := range []struct {
		reader scope.Cluster
		want   int
	}{{inEU, 1}, {inUS, 2}} {
		view, found := FromSlices(Source{Cluster: "east", Reader: test.reader}, web, mixed, nil)
		if view == nil || len(view.Slices) != test.want || len(found) > 0 {
			t.Fatalf("%s reads %v, %v", test.reader.ID, view, found)
		}
		copies := publish(view)
		for i, slice := range copies {
			if text := slice.Annotations[AnnotationSnapshot]; !strings.Contains(text, view.Slices[i].Clusters) {
				t.Errorf("the copy of a slice for %q says %s", view.Slices[i].Clusters, text)
			}
		}
	}
	// Chosen readers keep the last known state of a refused slice.
	known := abroad(wide)
	broken := publish(wide)
	for _, slice := range broken {
		slice.Annotations[AnnotationSnapshot] = strings.Replace(slice.Annotations[AnnotationSnapshot], "west; north", "local", 1)
	}
	view, found := FromSlices(Source{Cluster: "east", Reader: inEU}, web, broken, known)
	diff(t, "kept", view, known)
	if len(found) != 2 || found[0].Reason != ReasonBadSnapshot {
		t.Errorf("problems %v", found)
	}
}
