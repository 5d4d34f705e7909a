// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// exported is the export of a cluster since a day, with endpoints as in exporttest.Slice.
func exported(cluster string, kind v1beta1.ServiceImportType, port, day int, endpoints string) merge.Contribution {
	return merge.Contribution{View: exporttest.View(cluster, day, fmt.Sprintf("http:%d/TCP", port), endpoints, func(view *export.View) {
		view.Service, view.Spec.Type = web, kind
	})}
}

// observed is east with the import of the service after the first passes.
func observed(contributions []merge.Contribution, annotations map[string]string) merge.Observed {
	out := merge.Observed{
		Cluster: "east", Service: web, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Place: placement.Here{
			Cluster: scope.Cluster{ID: "east"}, Properties: func(string) map[string]string { return nil },
			Nodes: placement.Nodes{Zones: []string{"a"}},
		}.Of,
	}
	for i := range contributions {
		for key, value := range annotations {
			contributions[i].View.Spec.Annotations = map[string]string{key: value}
		}
	}
	for range 2 { // the second pass sees the IP
		out.ServiceImport = merge.Merge(out, contributions).ServiceImport
		if imported := out.ServiceImport; imported != nil && imported.Spec.Type == v1beta1.ClusterSetIP {
			imported.Spec.IPs = []string{"10.160.0.1"}
		}
	}
	return out
}

// lines has the elements of lists on lines of their own.
var lines = strings.NewReplacer("},{", "},\n{", ":[{", ":[\n{", "],\"", "],\n\"", "},\"", "},\n\"")

// TestExplain compares explanations with golden files. UPDATE_GOLDEN=1 writes them.
func TestExplain(t *testing.T) {
	const ip, headless = v1beta1.ClusterSetIP, v1beta1.Headless
	overloaded := exported("east", headless, 80, 1, "!10.64.0.1")
	overloaded.View.Spec.Overloaded, overloaded.View.Spec.TrafficDistribution = true, "PreferSameZone"
	both := func(kind v1beta1.ServiceImportType) []merge.Contribution {
		return []merge.Contribution{exported("east", kind, 80, 1, "10.64.0.1"), exported("west", kind, 80, 2, "10.65.0.1")}
	}
	for name, test := range map[string]struct {
		contributions []merge.Contribution
		annotations   map[string]string // exported
		west          string            // its state
		change        func(*reconciler.Input)
	}{
		"stale": {both(ip), nil, "stale", func(in *reconciler.Input) { in.Contributions[1].Demote = true }},
		"conflict": {
			[]merge.Contribution{exported("east", headless, 80, 2, "10.64.0.1"), exported("west", ip, 90, 1, "10.65.0.1")}, nil, "fresh", nil,
		},
		"headless": {
			[]merge.Contribution{exported("east", headless, 80, 1, "10.64.0.1 !10.64.0.2"), exported("west", headless, 80, 2, "10.65.0.1")},
			nil, "fresh", func(in *reconciler.Input) { in.Contributions[0].Demote = true },
		},
		"tiers": {both(ip), map[string]string{export.AnnotationPrefer: "west > east"}, "fresh", nil},
		"near":  {both(ip), map[string]string{export.AnnotationPrefer: "cluster"}, "fresh", nil},
		// Hints are for no local node, so kube-proxy ignores them.
		"far":     {[]merge.Contribution{exported("west", ip, 80, 1, "10.65.0.1")}, map[string]string{export.AnnotationPrefer: "cluster"}, "fresh", nil},
		"outside": {both(ip), map[string]string{export.AnnotationAllowedClusters: "east"}, "fresh", nil},
		"refused": {both(ip)[:1], nil, "refused", nil},
		"nothing": {nil, nil, "not imported", nil},
		// A cluster that is overloaded, with a traffic distribution that precedes its preference, and no ready endpoint.
		"overloaded": {[]merge.Contribution{overloaded}, map[string]string{export.AnnotationPrefer: "cluster"}, "", nil},
		// Imports of another implementation.
		"foreign": {nil, nil, "", func(in *reconciler.Input) { in.Observed.ServiceImport = &v1beta1.ServiceImport{} }},
	} {
		t.Run(name, func(t *testing.T) {
			in := reconciler.Input{Observed: observed(test.contributions, test.annotations), Contributions: test.contributions}
			states := map[string]string{"west": test.west}
			if test.west == "" {
				delete(states, "west")
			}
			if name != "far" && len(test.contributions) > 0 {
				states["east"] = "fresh"
			}
			if test.change != nil {
				test.change(&in)
			}
			var encoded strings.Builder
			encoder := json.NewEncoder(&encoded)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(explanation(in, states, state.Findings{})); err != nil {
				t.Fatal(err)
			}
			path, got := filepath.Join("testdata", name+".json"), lines.Replace(encoded.String())
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(want) != got {
				t.Errorf("%v, got\n%s", err, got)
			}
		})
	}
}

// TestChosen: an export for the reader is not reported as an export for other clusters.
func TestChosen(t *testing.T) {
	reader := scope.Cluster{ID: "east", Properties: map[string]string{"region": "us"}}
	for clusters, want := range map[string]string{"": "", "region in (us)": "", "*": "", "west": "west", "region=eu": "region=eu"} {
		view := exported("north", v1beta1.ClusterSetIP, 80, 1, "10.66.0.1").View
		view.Slices[0].Clusters = clusters
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Annotations: view.Annotations(&view.Slices[0], nil),
		}}
		if got := chosen([]*discoveryv1.EndpointSlice{slice}, reader); got != want {
			t.Errorf("%q: got %q", clusters, got)
		}
	}
}
