// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxMetadata bounds the exported labels and annotations together, in bytes of JSON, so that two versions of the
// snapshot fit into the 256 KiB that the API server allows for the annotations of an object.
const maxMetadata = 64 << 10

// IsReservedKey reports whether Kubernetes or this project use a label or annotation key, so that no export may set it
// on an import.
func IsReservedKey(key string) bool {
	domain, _, found := strings.Cut(strings.ToLower(key), "/")
	if !found {
		return false
	}
	return strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io") ||
		domain == Domain || strings.HasSuffix(domain, "."+Domain)
}

// exportedMetadata returns the entries of a kind, "label" or "annotation", that may be exported, in a new map or nil. It reports
// the others as problems of the object.
func exportedMetadata(kind string, entries map[string]string, object string, found *problems) (exported map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		value := entries[key]
		valid := len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
		if kind == "annotation" {
			valid = len(validation.IsQualifiedName(strings.ToLower(key))) == 0 && utf8.ValidString(value)
		}
		switch {
		case !valid:
			found.add(ReasonBadMetadata, object, "exported %s %.100q is not valid and left out", kind, key)
		case IsReservedKey(key) && (kind == "label" || !slices.Contains(ExportedKeys, key)):
			found.add(ReasonBadMetadata, object, "exported %s %q is reserved and left out", kind, key)
		case exported == nil:
			exported = map[string]string{key: value}
		default:
			exported[key] = value
		}
	}
	return exported
}
