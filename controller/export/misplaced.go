// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Fields of a ServiceExport with keys.
const (
	fieldLabels              = "metadata.labels"
	fieldAnnotations         = "metadata.annotations"
	fieldExportedLabels      = "spec.exportedLabels"
	fieldExportedAnnotations = "spec.exportedAnnotations"
)

// ownKeys are the keys that have an effect in fieldAnnotations only. ExportedKeys have theirs in
// fieldExportedAnnotations only.
var ownKeys = []string{AnnotationClusters, AnnotationSaturated, AnnotationSaturatedBelow}

// placeOf returns the only field of a ServiceExport in which a key has an effect, empty if it has none in any.
func placeOf(key string) string {
	switch {
	case slices.Contains(ownKeys, key):
		return fieldAnnotations
	case slices.Contains(ExportedKeys, key):
		return fieldExportedAnnotations
	}
	return ""
}

// misplaced reports a key in a field in which it has no effect.
func (p *problems) misplaced(object, key, field, place string) {
	p.addFor(key+" "+field, ReasonMisplacedKey, object, "%s has no effect in %s: move it to %s", key, field, place)
}

// misplacedKeys reports the misplaced keys in the metadata of a ServiceExport; exportedMetadata reports the others.
func misplacedKeys(serviceExport *v1beta1.ServiceExport, object string, found *problems) {
	for _, key := range slices.Concat(ownKeys, ExportedKeys) {
		place := placeOf(key)
		if _, has := serviceExport.Annotations[key]; has && place != fieldAnnotations {
			found.misplaced(object, key, fieldAnnotations, place)
		}
		if _, has := serviceExport.Labels[key]; has {
			found.misplaced(object, key, fieldLabels, place)
		}
	}
}

// misplacedClusters returns the field of a ServiceExport that has AnnotationClusters by mistake, empty for none.
func misplacedClusters(serviceExport *v1beta1.ServiceExport) string {
	for _, field := range []struct {
		name string
		keys map[string]string
	}{
		{fieldExportedAnnotations, serviceExport.Spec.ExportedAnnotations},
		{fieldExportedLabels, serviceExport.Spec.ExportedLabels},
		{fieldLabels, serviceExport.Labels},
	} {
		if _, has := field.keys[AnnotationClusters]; has {
			return field.name
		}
	}
	return ""
}
