// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// hint is what fixes what a check found in east, empty where it found nothing.
func hint(set *Set, check string) string {
	for _, finding := range Run(set) {
		if finding.Check == check && finding.Context == "east" {
			return finding.Fix
		}
	}
	return ""
}

// TestNameThatDoesNotExist tells a headless service that nobody serves, whose
// name does not exist then, from what DNS should answer for.
func TestNameThatDoesNotExist(t *testing.T) {
	for kind, wrong := range map[v1beta1.ServiceImportType]bool{v1beta1.Headless: false, v1beta1.ClusterSetIP: true} {
		set := newSet(func(east, _ *Cluster) {
			east.Imports = []v1beta1.ServiceImport{{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "db",
					Labels: map[string]string{export.LabelManagedBy: export.Manager},
				},
				Spec: v1beta1.ServiceImportSpec{Type: kind},
				Status: v1beta1.ServiceImportStatus{Conditions: []metav1.Condition{{
					Type:   "Ready",
					Status: "True",
				}}},
			}}
			e := explain.Of(east.Facts, types.NamespacedName{Namespace: "shop", Name: "db"}, explain.DefaultZone)
			e.Answered("a server", dns.Answer{Name: e.Name, Type: "A", Rcode: "NXDOMAIN"})
			east.Lookups = []*explain.Explanation{e}
		})
		if got := hint(set, "dns-names"); (got != "") != wrong {
			t.Errorf("%s: got %q", kind, got)
		}
	}
}

// TestHintsNameWhatIsUnusual holds that a command has the flags that a person
// gave, where it needs them.
func TestHintsNameWhatIsUnusual(t *testing.T) {
	set := newSet(func(east, west *Cluster) {
		east.System, west.System = "mcs", "mcs"
		east.DNSError = errors.New("no pod is ready")
		east.Exports = []v1beta1.ServiceExport{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
			Status: v1beta1.ServiceExportStatus{Conditions: []metav1.Condition{
				{Type: "Valid", Status: "True"},
				{Type: "Conflict", Status: "True"},
			}},
		}}
	})
	set.Zone = "example.set."
	for check, want := range map[string]string{
		"dns-reachable": "kubectl clusterset check --contexts east --dns east=<address> --zone example.set --system-namespace mcs",
		"exports-agree": "Resolve the conflict: `kubectl clusterset explain shop/db --contexts east,west --zone example.set --system-namespace mcs` lists the changes.",
	} {
		if got := hint(set, check); got != want {
			t.Errorf("%s: got %q, want %q", check, got, want)
		}
	}
	const want = "kubectl clusterset coredns enable --contexts east --zone example.set"
	if got := set.enable(set.Clusters[0]); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMissingDefinitions(t *testing.T) {
	set := newSet(func(east, _ *Cluster) { east.Definitions = map[string]*unstructured.Unstructured{} })
	const want = "Apply the CRDs: `kubectl clusterset manifest crds | kubectl --context east apply --server-side --force-conflicts -f -`. Then install the chart with --set crds.install=false."
	if got := hint(set, "crds"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
