// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

const (
	// PropertiesAnnotation carries the properties of a cluster, on its heartbeat and on the Leases of members.
	PropertiesAnnotation = "clusterset-dns.github.io/properties"
	// ClusterSetProperty is the name of the property with the cluster's set (KEP-2149). It never makes room for others.
	ClusterSetProperty = "clusterset.k8s.io"
	// ClusterIDProperty is the name of the property with the cluster's id (KEP-2149). It never makes room for others.
	ClusterIDProperty = "cluster.clusterset.k8s.io"
	// NetworkProperty is the name of the property with the network of a cluster's pods. Pods of clusters with the same value, or
	// without one, reach each other. It never makes room for others.
	NetworkProperty = "network.clusterset-dns.github.io"
)

// wellKnown are the names of the properties that precede all others.
var wellKnown = []string{ClusterSetProperty, ClusterIDProperty, NetworkProperty}

// EncodeProperties returns the text of properties: a JSON object of at most MaxBytes, {} for none, never empty.
// Properties that do not fit are omitted, and their names returned. The wellKnown properties get room first, then the
// others in the order of their names, so that the text depends only on the properties.
func EncodeProperties(all map[string]string) (text string, omitted []string) {
	fit := map[string]string{}
	for _, name := range slices.Concat(wellKnown, slices.Sorted(maps.Keys(all))) {
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
	text, _ := json.Marshal(all) // strings can always be encoded
	return string(text)
}

// ParseProperties parses the text of EncodeProperties. The empty text means unknown properties: the map is nil.
func ParseProperties(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("annotation %s has more than %d bytes", PropertiesAnnotation, MaxBytes)
	}
	var parsed map[string]string
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", PropertiesAnnotation, err)
	}
	if parsed == nil {
		return nil, fmt.Errorf("annotation %s is no JSON object", PropertiesAnnotation)
	}
	return parsed, nil
}
