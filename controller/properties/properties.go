// SPDX-License-Identifier: Apache-2.0

// Package properties encodes the ClusterProperties of a cluster (KEP-2149) for its heartbeat.
//
// The package is pure. docs/design.md#scope describes the format.
package properties

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// Annotation carries the properties of a cluster, on its heartbeat and on the Leases of members.
	Annotation = "clusterset-dns.github.io/properties"
	// ClusterSet is the name of the property that names the sets of a cluster (KEP-2149). It is never omitted for others.
	ClusterSet = "clusterset.k8s.io"
	// ClusterID is the name of the property that is the id of a cluster (KEP-2149). It is never omitted for others.
	ClusterID = "cluster.clusterset.k8s.io"
	// None is the text of a cluster that is known to have no properties.
	None = "{}"
	// MaxBytes bounds the encoded properties of a cluster.
	MaxBytes = 4096
)

// WellKnown are the names of the properties that precede all others.
var WellKnown = []string{ClusterSet, ClusterID}

// Encode returns the text of properties: a JSON object of at most MaxBytes, never empty. Properties that do not fit are
// omitted, those that are WellKnown last, the others in the order of their names; their names are returned. The text
// depends only on the properties.
func Encode(all map[string]string) (text string, omitted []string) {
	fit := map[string]string{}
	for _, name := range slices.Concat(WellKnown, slices.Sorted(maps.Keys(all))) {
		value, found := all[name]
		if _, seen := fit[name]; seen || !found {
			continue
		}
		if fit[name] = value; len(encoded(fit)) > MaxBytes {
			delete(fit, name)
			omitted = append(omitted, name)
		}
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

// Parse returns the properties that a text has. Those of the empty text are unknown, so that the map is nil.
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
	if parsed == nil {
		return nil, fmt.Errorf("annotation %s is no JSON object", Annotation)
	}
	return parsed, nil
}

// Sets returns the cluster sets that the properties of a cluster name, which the property ClusterSet separates by commas
// (enhancements#6238). There are none if it names none.
func Sets(all map[string]string) []string {
	var sets []string
	for name := range strings.SplitSeq(all[ClusterSet], ",") {
		if name = strings.TrimSpace(name); name != "" {
			sets = append(sets, name)
		}
	}
	return sets
}
