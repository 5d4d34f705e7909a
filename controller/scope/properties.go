// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"encoding/json"
	"fmt"
	"maps"
)

const (
	// PropertiesAnnotation carries the properties of a cluster, on its heartbeat and on the Leases of members.
	PropertiesAnnotation = "clusterset-dns.github.io/properties"
	// ClusterSetProperty is the name of the property with the cluster's set (KEP-2149).
	ClusterSetProperty = "clusterset.k8s.io"
	// ClusterIDProperty is the name of the property with the cluster's id (KEP-2149).
	ClusterIDProperty = "cluster.clusterset.k8s.io"
	// NetworkProperty is the name of the property with the network of a cluster's pods. Pods of clusters with the same value, or
	// without one, reach each other.
	NetworkProperty = "network.clusterset-dns.github.io"
)

// EncodeProperties returns the text of properties: a JSON object of at most MaxBytes, never empty. If they do not all fit, it has
// only those with the names above, or none.
func EncodeProperties(all map[string]string) (text string, complete bool) {
	if text = encoded(all); len(text) <= MaxBytes {
		return text, true
	}
	few := maps.Clone(all)
	maps.DeleteFunc(few, func(name, _ string) bool {
		return name != ClusterSetProperty && name != ClusterIDProperty && name != NetworkProperty
	})
	if text = encoded(few); len(text) <= MaxBytes {
		return text, false
	}
	return "{}", false
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
