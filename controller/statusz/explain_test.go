// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
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
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// exported is what a cluster exports since a day, with endpoints as exporttest.Slice has them.
func exported(cluster string, kind v1beta1.ServiceImportType, port, day int, endpoints string) merge.Contribution {
	return merge.Contribution{View: exporttest.View(cluster, day, fmt.Sprintf("http:%d/TCP", port), endpoints, func(view *export.View) {
		view.Service, view.Spec.Type = web, kind
	})}
}

// observed is east with the import of the service, as the first pass writes it.
func observed(contributions []merge.Contribution, annotations map[string]string) merge.Observed {
	out := merge.Observed{
		Cluster: "east", Service: web, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Place: placement.Here{
			Cluster: scope.Cluster{ID: "east"}, Properties: func(string) map[string]string { return nil },
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

// TestExplain holds explanations against golden files. UPDATE_GOLDEN=1 writes them.
func TestExplain(t *testing.T) {
	const ip, headless = v1beta1.ClusterSetIP, v1beta1.Headless
	fresh, stale := liveness.Verdict{Cluster: "west"}, liveness.Verdict{
		Cluster: "west", State: liveness.Stale, Reason: liveness.Silent, Demote: true,
	}
	for name, test := range map[string]struct {
		contributions []merge.Contribution
		annotations   map[string]string // exported
		change        func(*Subject)
	}{
		"stale": {
			[]merge.Contribution{exported("east", ip, 80, 1, "10.64.0.1"), exported("west", ip, 80, 2, "10.65.0.1")},
			nil,
			func(s *Subject) {
				s.Members, s.Contributions[1].Demote = []Publisher{{Cluster: "west", Verdict: stale}}, true
			},
		},
		"conflict": {
			[]merge.Contribution{exported("east", headless, 80, 2, "10.64.0.1"), exported("west", ip, 90, 1, "10.65.0.1")},
			nil,
			func(s *Subject) { s.Members = []Publisher{{Cluster: "west", Verdict: fresh}} },
		},
		"headless": {
			[]merge.Contribution{exported("east", headless, 80, 1, "10.64.0.1 !10.64.0.2"), exported("west", headless, 80, 2, "10.65.0.1")},
			nil, func(s *Subject) {
				s.Members, s.Contributions[0].Demote = []Publisher{{Cluster: "west", Verdict: fresh}}, true
				s.Contributions[0].View.Slices[0].Endpoints[1].Conditions = export.Conditions(false, true, false)
			},
		},
		"tiers": {
			[]merge.Contribution{exported("east", ip, 80, 1, "10.64.0.1"), exported("west", ip, 80, 2, "10.65.0.1")},
			map[string]string{export.AnnotationPrefer: "west > east"},
			func(s *Subject) { s.Members = []Publisher{{Cluster: "west", Verdict: fresh}} },
		},
		"outside": {
			[]merge.Contribution{exported("east", ip, 80, 1, "10.64.0.1"), exported("west", ip, 80, 2, "10.65.0.1")},
			map[string]string{export.AnnotationWithin: "east"},
			func(s *Subject) { s.Members = []Publisher{{Cluster: "west", Verdict: fresh}} },
		},
		"refused": {
			nil, nil, func(s *Subject) {
				s.Members = []Publisher{{Cluster: "north", For: "south"}, {Cluster: "west", Verdict: fresh, Accept: "kubectl --context <context of east> label namespace shop clusterset-dns.github.io/accept=true"}}
				s.Refused = map[string]string{"west": `--accept has "team-a"`}
				s.Problems = map[string][]export.Problem{"west": {{
					Reason: export.ReasonForeignAddress, Object: "EndpointSlice shop/web-west", Message: "10.1.0.1 is in no range",
					Address: netip.MustParseAddr("10.1.0.1"), Count: 1,
				}}}
			},
		},
		"elsewhere": {
			nil, nil, func(s *Subject) {
				s.Members, s.Elsewhere = []Publisher{{Cluster: "west", Verdict: fresh}}, `namespace "shop" does not exist`
				s.Settle = "kubectl --context <context of east> create namespace shop"
				s.Refused, s.Members[0].Accept = map[string]string{"west": `--accept has "team-a"`}, "accept it"
			},
		},
		"nothing": {nil, nil, func(*Subject) {}},
		"invalid": {
			nil, nil, func(s *Subject) {
				s.Observed.ServiceExport = &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
				s.Observed.Invalid = &export.Invalid{Reason: "NoService", Message: "Service shop/web does not exist."}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			subject := Subject{Input: reconciler.Input{
				Observed: observed(test.contributions, test.annotations), Contributions: test.contributions,
			}}
			test.change(&subject)
			got, err := json.MarshalIndent(Explain(subject), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".json")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(want) != string(got)+"\n" {
				t.Errorf("%v, got\n%s", err, got)
			}
		})
	}
}

// TestWhy: why what a cluster publishes, or its ServiceExport, is not what it seems.
func TestWhy(t *testing.T) {
	absent, _, _ := export.FromService(export.Exporter{Cluster: "west"}, &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, nil, nil)
	saturated := exported("east", v1beta1.Headless, 80, 1, "10.64.0.1")
	saturated.View.Spec.Saturated = true
	for name, test := range map[string]struct {
		contributions []merge.Contribution
		change        func(*Subject, *merge.Observed)
		want          string // exports, and problems with their fixes
	}{
		"a chosen export without Service": {
			[]merge.Contribution{{View: absent}},
			func(s *Subject, _ *merge.Observed) { s.Members = []Publisher{{Cluster: "west"}} },
			"west not exported: NoService []\nexports-valid: west does not export it: Service shop/web does not exist there. > " +
				"Correct the Service, or: `kubectl clusterset unexport shop/web --contexts <context of west>`.",
		},
		"a member that is fresh, with an import that outgrew a limit": {
			[]merge.Contribution{exported("west", v1beta1.Headless, 80, 1, "10.65.0.1")},
			func(s *Subject, _ *merge.Observed) {
				s.Members = []Publisher{{Cluster: "west", Unread: errors.New("more than 2000 endpoints")}}
			},
			"west fresh []\nmember-reachable: west is not read completely, so what changes there may not be imported: more than 2000 " +
				"endpoints. > kubectl clusterset check --contexts <context of east>,<context of west>",
		},
		"a namespace that is denied": {
			nil, func(s *Subject, o *merge.Observed) {
				s.Members, s.Elsewhere = []Publisher{{Cluster: "west"}}, `namespace "shop" is denied`
				o.Invalid = &export.Invalid{Reason: "NamespaceDenied", Message: "It takes no part."}
			},
			"east not exported: NamespaceDenied []\nwest not imported: namespace \"shop\" is denied []\n" +
				"exports-valid: east does not export it: It takes no part. > " +
				"Correct the Service, or: `kubectl clusterset unexport shop/web --contexts <context of east>`.",
		},
		"an export that a member refuses, of a cluster that is overloaded": {
			[]merge.Contribution{saturated},
			func(_ *Subject, o *merge.Observed) {
				o.ServiceExport = &v1beta1.ServiceExport{}
				o.ExportConditions = []metav1.Condition{{
					Type: reconciler.ConditionReach, Status: metav1.ConditionFalse, Message: "These members do not accept it: west.",
				}}
			},
			"east fresh [saturated]\n" +
				"exports-reach: The export of east does not reach all members. These members do not accept it: west. > ",
		},
		"an import of another implementation": {
			nil, func(_ *Subject, o *merge.Observed) { o.ServiceImport = &v1beta1.ServiceImport{} }, "",
		},
		"an import of another implementation that is not ready": {
			nil, func(_ *Subject, o *merge.Observed) {
				o.ServiceImport = &v1beta1.ServiceImport{Status: v1beta1.ServiceImportStatus{Conditions: []metav1.Condition{
					{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pending", Message: "It is not served."},
				}}}
			},
			"imports-ready: Import shop/web is not ready: It is not served. > ",
		},
	} {
		subject := Subject{Input: reconciler.Input{
			Observed: observed(test.contributions, nil), Contributions: test.contributions,
		}}
		test.change(&subject, &subject.Observed)
		var got []string
		explained := Explain(subject)
		for _, each := range explained.Exports {
			got = append(got, fmt.Sprint(each.Cluster, " ", each.State, " ", each.Rules))
		}
		for _, each := range explained.Problems {
			got = append(got, each.Name+": "+each.What+" > "+each.Fix)
		}
		if text := strings.Join(got, "\n"); text != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, text, test.want)
		}
	}
}

// TestChosen: an export that is for the reader is not reported as one that is for others.
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
