// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// TestHintsNameWhatIsUnusual holds that a command has the flags that a person
// gave, where it needs them.
func TestHintsNameWhatIsUnusual(t *testing.T) {
	set := newSet(func(east, west *Cluster) {
		east.System, west.System = "mcs", "mcs"
		east.DNSError = errors.New("no pod is ready")
	})
	set.Zone = "example.set."
	for check, want := range map[string]string{
		"dns-reachable": "kubectl clusterset check --contexts east --dns east=<address> --zone example.set --system-namespace mcs",
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
