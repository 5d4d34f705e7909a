// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Fields of a ServiceExport in which keys of this project have an effect.
const (
	fieldAnnotations         = "metadata.annotations"
	fieldExportedAnnotations = "spec.exportedAnnotations"
)

// ownKeys are the keys that have an effect in fieldAnnotations only. ExportedKeys have theirs in
// fieldExportedAnnotations only.
var ownKeys = []string{AnnotationClusters, AnnotationSaturated}

// misplaced calls found for each key of a ServiceExport in a field in which it has no effect, with the field in which it
// has one.
func misplaced(serviceExport *v1beta1.ServiceExport, found func(key, field, place string)) {
	for _, field := range []struct {
		name string
		keys map[string]string
	}{
		{fieldExportedAnnotations, serviceExport.Spec.ExportedAnnotations},
		{"spec.exportedLabels", serviceExport.Spec.ExportedLabels},
		{"metadata.labels", serviceExport.Labels},
		{fieldAnnotations, serviceExport.Annotations},
	} {
		for _, key := range slices.Concat(ownKeys, ExportedKeys) {
			place := fieldAnnotations
			if slices.Contains(ExportedKeys, key) {
				place = fieldExportedAnnotations
			}
			if _, has := field.keys[key]; has && field.name != place {
				found(key, field.name, place)
			}
		}
	}
}
