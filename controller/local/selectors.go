// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// sameAsImporter among the values of a ClusterProperty stands for the value in the importing cluster (KEP-5939, a draft).
const sameAsImporter = "@SameAsImporter@"

// decodeExport is decode for ServiceExports. It translates the draft field spec.clusterSelectors, which the Go type does not
// have, into the exported annotation export.AnnotationPrefer, unless the ServiceExport has that annotation.
func decodeExport(object any) (any, error) {
	read, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // it is decoded already
	}
	path := []string{"spec", "exportedAnnotations", export.AnnotationPrefer}
	entries, _, _ := unstructured.NestedSlice(read.Object, "spec", "clusterSelectors")
	if _, annotated, _ := unstructured.NestedString(read.Object, path...); len(entries) > 0 && !annotated {
		var tiers []string
		for _, entry := range entries {
			tiers = append(tiers, tierOf(entry))
		}
		// It fails if the annotations are no map: decode reports that.
		_ = unstructured.SetNestedField(read.Object, strings.Join(tiers, " > "), path...)
	}
	return decode[v1beta1.ServiceExport](read)
}

// tierOf returns an entry in the form of export.AnnotationPrefer. An entry without such a form is returned as JSON, which is no
// tier, so that a condition of the imports quotes it.
func tierOf(entry any) string {
	data, err := json.Marshal(entry)
	var is struct {
		PropertySelector struct {
			metav1.LabelSelector `json:",inline"`
			MatchProperties      map[string]string `json:"matchProperties"` // instead of matchLabels, in one revision
		} `json:"propertySelector"`
	}
	if err != nil || json.Unmarshal(data, &is) != nil {
		return string(data)
	}
	all := is.PropertySelector.MatchExpressions
	for _, values := range []map[string]string{is.PropertySelector.MatchProperties, is.PropertySelector.MatchLabels} {
		for _, key := range slices.Sorted(maps.Keys(values)) { // the same text for the same entry
			all = append(all, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{values[key]}})
		}
	}
	if len(all) == 1 && all[0].Operator == metav1.LabelSelectorOpIn && len(all[0].Values) == 1 {
		switch key, value := all[0].Key, all[0].Values[0]; {
		case key == scope.ClusterIDProperty && value == sameAsImporter:
			return "local"
		case key == scope.ClusterIDProperty:
			return value
		case value == sameAsImporter:
			return "same(" + key + ")"
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: all})
	if err != nil || selector.Empty() {
		return string(data) // sameAsImporter is no value of a label selector
	}
	return selector.String()
}
