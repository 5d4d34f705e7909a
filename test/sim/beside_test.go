// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestBesideOthers compares docs/use/beside-others.md with the name and the label of derived Services. TestArgoRollouts
// of test/deploy tests the patches of Argo Rollouts' Job.
func TestBesideOthers(t *testing.T) {
	document, err := os.ReadFile("../../docs/use/beside-others.md")
	must(t, err)
	for _, each := range []string{
		"backend: {service: {name: " + export.DerivedServiceName(types.NamespacedName{Namespace: "demo", Name: "web"}) + ", port: {number: 80}}}",
		"--label-filter=" + export.LabelManagedBy + "!=" + export.Manager,
	} {
		if !strings.Contains(string(document), each+"\n") {
			t.Errorf("the page does not have %s", each)
		}
	}
}
