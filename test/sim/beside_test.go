// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestBesideOthers holds docs/use/beside-others.md to the name and the label of derived Services. TestArgoRollouts of
// test/deploy has the patches of Argo Rollouts' Job.
func TestBesideOthers(t *testing.T) {
	document, err := os.ReadFile("../../docs/use/beside-others.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(document, -1)
	ingress, exported := &networkingv1.Ingress{}, &corev1.Service{}
	must(t, yaml.UnmarshalStrict([]byte(strings.Split(string(blocks[0][1]), "---\n")[0]), ingress))
	must(t, yaml.UnmarshalStrict(blocks[1][1], exported))
	backend := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if want := export.DerivedServiceName(types.NamespacedName{Namespace: exported.Namespace, Name: exported.Name}); backend.Name != want ||
		backend.Port.Number != exported.Spec.Ports[0].Port {
		t.Errorf("the backend is %v, want %s", backend, want)
	}
	filter, err := labels.Parse(string(regexp.MustCompile(`--label-filter=(\S+)`).FindSubmatch(document)[1]))
	must(t, err)
	if filter.Matches(labels.Set{export.LabelManagedBy: export.Manager}) || !filter.Matches(labels.Set(exported.Labels)) {
		t.Errorf("%s selects the wrong Services", filter)
	}
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
