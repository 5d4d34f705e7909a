// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/input"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// exported is what a cluster exports, with ready endpoints and one that is not.
func exported(cluster string, kind v1beta1.ServiceImportType, port int32, day int, addresses ...string) merge.Contribution {
	view := &export.View{
		Cluster: cluster, Service: web,
		Spec: &export.Spec{
			Created: time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC), Type: kind,
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []export.Port{{Name: "http", Protocol: corev1.ProtocolTCP, Number: port}},
		},
		Slices: []export.Slice{{
			Name: "web-" + cluster, AddressType: discoveryv1.AddressTypeIPv4,
			Targets: []export.Target{{Protocol: corev1.ProtocolTCP, Number: port, Port: 8080}},
		}},
	}
	for i, address := range addresses {
		view.Slices[0].Endpoints = append(view.Slices[0].Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: export.Conditions(i == 0 || i < len(addresses)-1, true, false),
		})
	}
	return merge.Contribution{View: view}
}

// observed is east with the import of the service, as the first pass writes it.
func observed(t *testing.T, contributions []merge.Contribution, annotations map[string]string) merge.Observed {
	t.Helper()
	out := merge.Observed{Cluster: "east", Service: web, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}
	for i := range contributions {
		for key, value := range annotations {
			contributions[i].View.Spec.Annotations = map[string]string{key: value}
		}
	}
	out.ServiceImport = merge.Merge(out, contributions).ServiceImport
	if out.ServiceImport == nil {
		return out
	}
	if out.ServiceImport.Spec.Type == v1beta1.ClusterSetIP {
		out.ServiceImport.Spec.IPs = []string{"10.160.0.1"}
	}
	out.ServiceImport = merge.Merge(out, contributions).ServiceImport
	if out.ServiceImport.Spec.Type == v1beta1.ClusterSetIP {
		out.ServiceImport.Spec.IPs = []string{"10.160.0.1"}
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
			[]merge.Contribution{exported("east", ip, 80, 1, "10.64.0.1"), exported("west", ip, 80, 2, "10.65.0.1")}, nil,
			func(s *Subject) {
				s.Members, s.Contributions[1].Demote = []Publisher{{Cluster: "west", Verdict: stale}}, true
			},
		},
		"conflict": {
			[]merge.Contribution{exported("east", headless, 80, 2, "10.64.0.1"), exported("west", ip, 90, 1, "10.65.0.1")}, nil,
			func(s *Subject) { s.Members = []Publisher{{Cluster: "west", Verdict: fresh}} },
		},
		"headless": {
			[]merge.Contribution{exported("east", headless, 80, 1, "10.64.0.1", "10.64.0.2"), exported("west", headless, 80, 2, "10.65.0.1")},
			nil, func(s *Subject) {
				s.Members, s.Contributions[0].Demote = []Publisher{{Cluster: "west", Verdict: fresh}}, true
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
				s.Members = []Publisher{{Cluster: "north", For: "south"}, {Cluster: "west", Verdict: fresh}}
				s.Refused = map[string]string{"west": `--accept has "team-a"`}
				s.Problems = map[string][]export.Problem{"west": {{
					Reason: export.ReasonForeignAddress, Object: "EndpointSlice shop/web-west", Message: `"10.1.0.1" is in no range`, Count: 1,
				}}}
			},
		},
		"elsewhere": {
			nil, nil, func(s *Subject) {
				s.Members, s.Elsewhere = []Publisher{{Cluster: "west", Verdict: fresh}}, `namespace "shop" does not exist`
			},
		},
		"nothing": {nil, nil, func(*Subject) {}},
		"invalid": {
			nil, nil, func(s *Subject) {
				s.Existing.Observed.ServiceExport = &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
				s.Existing.Observed.Invalid = &export.Invalid{Reason: "NoService", Message: "Service shop/web does not exist."}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			subject := Subject{Input: input.Input{
				Existing: apply.Existing{Observed: observed(t, test.contributions, test.annotations)}, Contributions: test.contributions,
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
