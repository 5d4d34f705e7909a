// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// exportedKeys is the value of export.AnnotationExported: the keys that come from exports, sorted.
type exportedKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// formatExportedKeys returns the value of the annotation, empty if nothing is exported.
func formatExportedKeys(spec *export.Spec) string {
	if len(spec.Labels) == 0 && len(spec.Annotations) == 0 {
		return ""
	}
	text, _ := json.Marshal(exportedKeys{slices.Sorted(maps.Keys(spec.Labels)), slices.Sorted(maps.Keys(spec.Annotations))})
	return string(text) // strings always marshal
}

// importMetadata returns the exported labels or annotations, and the observed ones that were not exported before: these
// are of other writers. Only exports set export.ExportedKeys. The map is new.
func importMetadata(observed, exported map[string]string, before []string) map[string]string {
	merged := make(map[string]string, len(observed)+len(exported)+1)
	maps.Copy(merged, observed)
	for _, key := range before {
		if !export.IsReservedKey(key) {
			delete(merged, key)
		}
	}
	for _, key := range export.ExportedKeys {
		delete(merged, key)
	}
	maps.Copy(merged, exported)
	return merged
}
