// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// Readers of exports of cluster east.
var (
	inEU = scope.Cluster{ID: "west", Properties: map[string]string{"region": "eu"}}
	inUS = scope.Cluster{ID: "north", Properties: map[string]string{"region": "us"}}
)

func chosenBy(clusters string) func(*v1beta1.ServiceExport) {
	return func(e *v1beta1.ServiceExport) { e.Annotations = map[string]string{AnnotationClusters: clusters} }
}

// chosen is the view of an export for chosen clusters.
func chosen(t testing.TB, clusters string) *View {
	return mustView(t, newExport(chosenBy(clusters)), newService("80/TCP"), newSlice("a", "8080/TCP", "10.1.0.1"),
		newSlice("b", "8080/TCP", "10.1.0.2"))
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
