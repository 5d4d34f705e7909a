// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
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

// TestChosenClusters: chosen clusters read the export. For other clusters it does not exist, even if they have copies of it.
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
		for kind, view := range map[string]*View{"present": chosen(t, clusters), "absent": absent(t, chosenBy(clusters))} {
			var got []string
			for _, reader := range readers {
				read, found, _ := FromSlices(Source{Cluster: "east", Reader: reader}, web, publish(view), copied(all))
				diff(t, clusters+": problems", found, []Problem(nil))
				if read != nil {
					got = append(got, reader.ID)
					diff(t, clusters+": "+kind, read, abroad(view))
				}
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("%s: %s is for %q, want %q", clusters, kind, got, want)
			}
			if text := ClustersOf(publish(view)[0]); text != clusters && !strings.Contains(clusters, "*") {
				t.Errorf("%s: a slice is for %q", clusters, text)
			}
		}
	}
}

// TestChosenAmongOthers: while an export changes, each slice and each copy is for the clusters in its own snapshot.
func TestChosenAmongOthers(t *testing.T) {
	wide, narrow := chosen(t, "west; north"), chosen(t, "north")
	mixed := []*discoveryv1.EndpointSlice{publish(wide)[0], publish(narrow)[1]}
	for want, reader := range map[string]scope.Cluster{"[west; north]": inEU, "[west; north north]": inUS} {
		view, found, _ := FromSlices(Source{Cluster: "east", Reader: reader}, web, mixed, nil)
		if view == nil || len(found) > 0 {
			t.Fatalf("%s reads %v, %v", reader.ID, view, found)
		}
		var got []string
		for _, slice := range publish(view) {
			got = append(got, ClustersOf(slice))
		}
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%s has copies for %s, want %s", reader.ID, text, want)
		}
	}
}
