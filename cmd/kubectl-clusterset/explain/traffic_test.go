// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
)

// TestTraffic: for each cluster and endpoint, which rule decided whether it is used. West and north export, east looks.
func TestTraffic(t *testing.T) {
	for name, test := range map[string]struct {
		key, value string
		saturated  bool
		want       string
		effect     string
		headless   bool
	}{
		"nothing": {
			"", "", false,
			"west: ; 10.1.0.1 used: ready; 10.1.0.2 used: ready; north: ; 10.2.0.1 used: ready",
			"All endpoints are used equally.",
			false,
		},
		"tiers": {
			export.AnnotationPrefer, "region=us > west", false,
			"west: tier 2; 10.1.0.1 demoted: tier 2, and endpoints that come before are ready; " +
				"10.1.0.2 demoted: tier 2, and endpoints that come before are ready; north: tier 1; 10.2.0.1 used: ready",
			"Endpoints are used in this order of clusters: region=us > west.",
			false,
		},
		"border": {
			export.AnnotationWithin, "region=eu", false,
			"west: ; 10.1.0.1 used: ready; 10.1.0.2 used: ready; north: outside of the border region=eu; " +
				"10.2.0.1 outside: outside of the border region=eu",
			"All endpoints are used equally. Only endpoints of these clusters are used: region=eu.",
			false,
		},
		"an invalid border": {
			export.AnnotationWithin, "region=eu > us", false,
			"west: the border is invalid and admits east alone; " +
				"10.1.0.1 outside: the border is invalid and admits east alone; " +
				"10.1.0.2 outside: the border is invalid and admits east alone; " +
				"north: the border is invalid and admits east alone; " +
				"10.2.0.1 outside: the border is invalid and admits east alone",
			"All endpoints are used equally. The border is invalid: only endpoints of east are used.",
			false,
		},
		"weights": {
			export.AnnotationWeights, "west=50", false,
			"west: weight 50 %: 1 of 2 ready IPv4 endpoints, share 50 %; " +
				"10.1.0.1 demoted: weight 50 %: 1 of 2 ready IPv4 endpoints, and " +
				"endpoints that come before are ready; 10.1.0.2 used: ready; north: share 50 %; 10.2.0.1 used: ready",
			"Clusters get these shares: west=50.",
			false,
		},
		"saturated": {
			"", "", true,
			"west: saturated; 10.1.0.1 demoted: saturated, and endpoints that come before are ready; " +
				"10.1.0.2 demoted: saturated, and endpoints that come before are ready; north: ; 10.2.0.1 used: ready",
			"All endpoints are used equally.",
			false,
		},
		"tiers in SRV answers": {
			export.AnnotationPrefer, "region=us > west", false,
			"west: tier 2; 10.1.0.1 demoted: tier 2, and endpoints that come before are ready, priority 2, weight 100; " +
				"10.1.0.2 demoted: tier 2, and endpoints that come before are ready, priority 2, weight 100; " +
				"north: tier 1; 10.2.0.1 used: ready, priority 0, weight 100",
			"Endpoints are used in this order of clusters: region=us > west.",
			true,
		},
		"weights in SRV answers": {
			export.AnnotationWeights, "west=20", false,
			"west: weight 20 %: 1 of 2 ready IPv4 endpoints; 10.1.0.1 demoted: weight 20 %: 1 of 2 ready IPv4 endpoints, and " +
				"endpoints that come before are ready, priority 0, weight 5120; " +
				"10.1.0.2 used: ready, priority 0, weight 5120; " +
				"north: ; 10.2.0.1 used: ready, priority 0, weight 40960",
			"Clusters get these shares: west=20.",
			true,
		},
		"saturation in SRV answers": {
			"", "", true,
			"west: saturated; 10.1.0.1 demoted: saturated, and endpoints that come before are ready, priority 32, weight 100; " +
				"10.1.0.2 demoted: saturated, and endpoints that come before are ready, priority 32, weight 100; " +
				"north: ; 10.2.0.1 used: ready, priority 0, weight 100",
			"All endpoints are used equally.",
			true,
		},
	} {
		f := newFacts()
		f.Exports, f.Slices, f.Imports = nil, nil, nil
		var contributions []merge.Contribution
		for i, cluster := range []string{"west", "north"} {
			view := &export.View{Cluster: cluster, Service: service, Spec: &export.Spec{
				Created: time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC), Type: v1beta1.ClusterSetIP,
				Ports:      []export.Port{{Protocol: corev1.ProtocolTCP, Number: 80}},
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Saturated: test.saturated && i == 0,
				SessionAffinity:       corev1.ServiceAffinityNone,
				InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
			}}
			if test.headless {
				view.Spec.Type = v1beta1.Headless
			}
			if test.key != "" {
				view.Spec.Annotations = map[string]string{test.key: test.value}
			}
			slice := export.Slice{
				Name: "db-" + cluster, AddressType: discoveryv1.AddressTypeIPv4,
				Targets: []export.Target{{Protocol: corev1.ProtocolTCP, Number: 80, Port: 80}},
			}
			for n := range 2 - i {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{fmt.Sprintf("10.%d.0.%d", 1+i, 1+n)}, Conditions: export.Conditions(true, true, false),
				})
			}
			view.Slices = []export.Slice{slice}
			known := map[string]string{"region": []string{"eu", "us"}[i]}
			contributions = append(contributions, merge.Contribution{View: view, Properties: known})
			m := facts.Member{ID: cluster, Lease: &coordinationv1.Lease{}}
			text, _ := properties.Encode(known)
			m.Lease.Annotations = map[string]string{properties.Annotation: text}
			m.Published = merge.Merge(merge.Observed{Cluster: cluster, Service: service},
				[]merge.Contribution{{View: view}}).EndpointSlices
			f.Members = append(f.Members, m)
		}
		result := merge.Merge(merge.Observed{Cluster: "east", Service: service}, contributions)
		f.Imports, f.Slices = []v1beta1.ServiceImport{*result.ServiceImport}, result.EndpointSlices
		e := Of(f, service, DefaultZone)
		setBy := ""
		if test.key != "" {
			setBy = "the exported annotation " + test.key + ": " + test.value + " of the ServiceExport in west"
		}
		if e.Preference == nil || e.Preference.SetBy != setBy {
			t.Errorf("%s: preference %+v, want it to be set by %q", name, e.Preference, setBy)
		}
		var got []string
		for _, each := range e.Exports {
			got = append(got, each.Cluster+": "+strings.Join(each.Rules, ", "))
			for _, endpoint := range e.Endpoints {
				if endpoint.Cluster == each.Cluster {
					text := fmt.Sprintf("%s %s: %s", endpoint.Address, endpoint.State, endpoint.Reason)
					if endpoint.SRV != "" {
						text += ", " + endpoint.SRV
					}
					got = append(got, text)
				}
			}
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, text, test.want)
		}
		if e.Preference == nil || e.Preference.Effect != test.effect {
			t.Errorf("%s: preference %+v, want %s", name, e.Preference, test.effect)
		}
		if i := slices.IndexFunc(e.Problems, func(p Problem) bool {
			return strings.Contains(p.What, "not imported yet") ||
				strings.Contains(p.What, "behind")
		}); i >= 0 {
			t.Errorf("%s: problem %+v", name, e.Problems[i])
		}
		var out strings.Builder
		if err := e.Text(&out, false); err != nil || strings.Contains(out.String(), "RULES") != (test.key != "" || test.saturated) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if strings.Contains(out.String(), " SRV") != test.headless {
			t.Errorf("%s:\n%s", name, out.String())
		}
	}
}
