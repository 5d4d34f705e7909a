// SPDX-License-Identifier: Apache-2.0

// Package properties encodes the ClusterProperties of a cluster (KEP-2149) for its heartbeat.
//
// The package is pure. docs/design/scope.md describes the format.
package properties

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

const (
	// Annotation carries the properties of a cluster, on its heartbeat and on the Leases of members.
	Annotation = "clusterset-dns.github.io/properties"
	// ClusterSet is the name of the property that names the set of a cluster. It is never omitted for others.
	ClusterSet = "clusterset.k8s.io"
	// None is the text of a cluster that is known to have no properties.
	None = "{}"
	// MaxBytes bounds the encoded properties of a cluster.
	MaxBytes = 4096
)

// Encode returns the text of properties: a JSON object of at most MaxBytes, empty without properties. Properties that
// do not fit are omitted, in the order of their names; their names are returned. The text depends only on the
// properties.
func Encode(all map[string]string) (text string, omitted []string) {
	names := slices.Sorted(maps.Keys(all))
	if i := slices.Index(names, ClusterSet); i > 0 {
		copy(names[1:i+1], names[:i])
		names[0] = ClusterSet
	}
	fit, size := map[string]string{}, len("{}")
	for _, name := range names {
		entry := encoded(map[string]string{name: all[name]})
		need := len(entry) - len("{}")
		if len(fit) > 0 {
			need += len(",")
		}
		if size+need > MaxBytes {
			omitted = append(omitted, name)
			continue
		}
		size += need
		fit[name] = all[name]
	}
	if len(fit) == 0 {
		return "", omitted
	}
	return encoded(fit), omitted
}

func encoded(all map[string]string) string {
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return string(text)
}

// Parse returns the properties that a text has. The empty text has none, so that the map is nil.
func Parse(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("annotation %s has more than %d bytes", Annotation, MaxBytes)
	}
	var parsed map[string]string
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", Annotation, err)
	}
	return parsed, nil
}
