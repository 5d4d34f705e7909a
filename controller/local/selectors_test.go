// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
)

// TestClusterSelectors: the draft field of KEP-5939 becomes the annotation, if that has a form for it. Otherwise the annotation
// is no list of tiers, which is reported.
func TestClusterSelectors(t *testing.T) {
	const (
		local     = "{propertySelector: {matchExpressions: [{key: cluster.clusterset.k8s.io, operator: In, values: ['@SameAsImporter@']}]}}"
		east      = "{propertySelector: {matchLabels: {cluster.clusterset.k8s.io: east}}}"
		region    = "{propertySelector: {matchProperties: {region.topology.k8s.io: '@SameAsImporter@'}}}"
		gpu       = "{propertySelector: {matchProperties: {gpu: high}, matchExpressions: [{key: tier, operator: NotIn, values: [a, b]}, {key: x, operator: Exists}]}}"
		regionGPU = "{propertySelector: {matchProperties: {region.topology.k8s.io: '@SameAsImporter@', gpu: high}}}"
		empty     = "{propertySelector: {}}"
		wrong     = "{propertySelector: {matchProperties: [a]}}"
	)
	for _, test := range []struct {
		spec, want string
		valid      bool
	}{
		{"{}", "", true},
		{"{clusterSelectors: []}", "", true},
		{"{clusterSelectors: [" + local + "," + region + "]}", "local > same(region.topology.k8s.io)", true},
		{"{clusterSelectors: [" + east + "," + gpu + "]}", "east > gpu in (high),tier notin (a,b),x", true},
		{"{clusterSelectors: [" + local + "], exportedAnnotations: {clusterset-dns.github.io/prefer: none}}", "none", true},
		{"{clusterSelectors: [" + local + "], exportedAnnotations: {other: x}}", "local", true},
		{"{clusterSelectors: [" + regionGPU + "]}", "@SameAsImporter@", false},
		{"{clusterSelectors: [" + empty + "]}", "propertySelector", false},
		{"{clusterSelectors: [" + wrong + "]}", "matchProperties", false},
	} {
		var object map[string]any
		must(t, yaml.Unmarshal([]byte("{metadata: {name: web}, spec: "+test.spec+"}"), &object))
		decoded, err := decodeExport(&unstructured.Unstructured{Object: object})
		must(t, err)
		got := decoded.(*v1beta1.ServiceExport).Spec.ExportedAnnotations[export.AnnotationPrefer]
		_, invalid := placement.ParseTiers(got)
		if test.valid != (invalid == nil) || test.valid && got != test.want || !strings.Contains(got, test.want) {
			t.Errorf("%s: the annotation is %q (%v), want %q, valid %v", test.spec, got, invalid, test.want, test.valid)
		}
	}
}
