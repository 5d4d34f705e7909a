// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"encoding/json"
	"errors"
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
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
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

// lines has the elements of lists and the summary on lines of their own.
var lines = strings.NewReplacer("},{", "},\n{", ":[{", ":[\n{", "],\"", "],\n\"", "},\"", "},\n\"", "\"summary\"", "\n\"summary\"")

// TestExplain compares explanations with golden files. UPDATE_GOLDEN=1 writes them.
func TestExplain(t *testing.T) {
	const ip, headless = v1beta1.ClusterSetIP, v1beta1.Headless
	serviceExport := &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	absent, _, _ := export.FromService(export.Exporter{Cluster: "west"}, serviceExport, nil, nil)
	overloaded := exported("east", headless, 80, 1, "10.64.0.1")
	overloaded.View.Spec.Overloaded, overloaded.View.Spec.TrafficDistribution = true, "PreferSameZone"
	both := func(kind v1beta1.ServiceImportType) []merge.Contribution {
		return []merge.Contribution{exported("east", kind, 80, 1, "10.64.0.1"), exported("west", kind, 80, 2, "10.65.0.1")}
	}
	for name, test := range map[string]struct {
		contributions []merge.Contribution
		annotations   map[string]string // exported
		west          *Publisher        // nil if it publishes nothing
		change        func(*Subject)
	}{
		"stale": {both(ip), nil, &Publisher{Verdict: liveness.Verdict{
			Cluster: "west", State: liveness.Stale, Reason: liveness.NoHeartbeat, Demote: true,
		}, Findings: state.Findings{{Name: "member-fresh", Severity: state.Failed, What: "West is silent.", Fix: "Look."}}}, func(s *Subject) { s.Contributions[1].Demote = true }},
		"conflict": {
			[]merge.Contribution{exported("east", headless, 80, 2, "10.64.0.1"), exported("west", ip, 90, 1, "10.65.0.1")},
			nil, &Publisher{}, nil,
		},
		"headless": {
			[]merge.Contribution{exported("east", headless, 80, 1, "10.64.0.1 !10.64.0.2"), exported("west", headless, 80, 2, "10.65.0.1")},
			nil, &Publisher{}, func(s *Subject) {
				s.Contributions[0].Demote = true
				s.Contributions[0].View.Slices[0].Endpoints[1].Conditions = export.Conditions(false, true, false)
			},
		},
		"tiers":   {both(ip), map[string]string{export.AnnotationPrefer: "west > east"}, &Publisher{}, nil},
		"near":    {both(ip), map[string]string{export.AnnotationPrefer: "cluster"}, &Publisher{}, nil},
		"outside": {both(ip), map[string]string{export.AnnotationAllowedClusters: "east"}, &Publisher{}, nil},
		"refused": {nil, nil, &Publisher{Accept: "kubectl --context <context of east> label namespace shop clusterset-dns.github.io/accept=true"}, func(s *Subject) {
			s.Members = append([]Publisher{{Cluster: "north", For: "south"}}, s.Members...)
			s.Refused = map[string]string{"west": `--accept has "team-a"`}
			s.Problems = map[string][]export.Problem{"west": {{
				Reason: export.ReasonForeignAddress, Object: "EndpointSlice shop/web-west", Message: "10.1.0.1 is in no range",
				Count: 1,
			}}}
		}},
		"elsewhere": {nil, nil, &Publisher{Accept: "accept it"}, func(s *Subject) {
			s.Elsewhere, s.Settle = `namespace "shop" does not exist`, "kubectl --context <context of east> create namespace shop"
			s.Refused = map[string]string{"west": `--accept has "team-a"`}
		}},
		"nothing": {nil, nil, nil, nil},
		// An export for this cluster whose Service does not exist.
		"absent": {[]merge.Contribution{{View: absent}}, nil, &Publisher{}, nil},
		// A fresh member with an import that outgrew a limit.
		"limit": {
			[]merge.Contribution{exported("west", headless, 80, 1, "10.65.0.1")},
			nil,
			&Publisher{Unread: errors.New("more than 2000 endpoints")}, nil,
		},
		"denied": {nil, nil, &Publisher{}, func(s *Subject) {
			s.Elsewhere = `namespace "shop" is denied`
			s.Observed.Invalid = &export.Invalid{Reason: "NamespaceDenied", Message: "It takes no part."}
		}},
		// An export that a member refuses. Its cluster is overloaded, and its traffic distribution precedes its preference.
		"reach": {[]merge.Contribution{overloaded}, map[string]string{export.AnnotationPrefer: "cluster"}, nil, func(s *Subject) {
			s.Observed.ServiceExport = &v1beta1.ServiceExport{}
			s.Observed.ExportConditions = []metav1.Condition{{
				Type: reconciler.ConditionReach, Status: metav1.ConditionFalse, Message: "These members do not accept it: west.",
			}}
		}},
		// Imports of another implementation.
		"foreign": {nil, nil, nil, func(s *Subject) { s.Observed.ServiceImport = &v1beta1.ServiceImport{} }},
	} {
		t.Run(name, func(t *testing.T) {
			subject := Subject{Input: reconciler.Input{
				Observed: observed(test.contributions, test.annotations), Contributions: test.contributions,
			}}
			if test.west != nil {
				test.west.Cluster = "west"
				subject.Members = []Publisher{*test.west}
			}
			if test.change != nil {
				test.change(&subject)
			}
			var encoded strings.Builder
			encoder := json.NewEncoder(&encoded)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(Explain(subject)); err != nil {
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
