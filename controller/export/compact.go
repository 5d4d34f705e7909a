// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Compact makes a slice that was just decoded take less memory, and changes nothing of what it says. Its endpoints
// share equal conditions, zones and hints, so that they must not be changed in place. It is idempotent.
func Compact(slice *discoveryv1.EndpointSlice) {
	slice.Labels, slice.Annotations = compactKeys(slice.Labels), compactKeys(slice.Annotations)
	if cap(slice.Endpoints) > len(slice.Endpoints) {
		slice.Endpoints = slices.Clip(append(make([]discoveryv1.Endpoint, 0, len(slice.Endpoints)), slice.Endpoints...))
	}
	compactAddresses(slice.Endpoints)
	var before *discoveryv1.Endpoint
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		conditions := &endpoint.Conditions
		for _, condition := range []**bool{&conditions.Ready, &conditions.Serving, &conditions.Terminating} {
			*condition = sharedBool(*condition)
		}
		if before != nil {
			endpoint.Zone = sameString(before.Zone, endpoint.Zone)
			endpoint.NodeName = sameString(before.NodeName, endpoint.NodeName)
			if equalHints(before.Hints, endpoint.Hints) {
				endpoint.Hints = before.Hints
			}
		}
		before = endpoint
	}
}

// compactAddresses puts the addresses of endpoints that have one into one list and one string.
func compactAddresses(endpoints []discoveryv1.Endpoint) {
	var text strings.Builder
	count := 0
	for i := range endpoints {
		if len(endpoints[i].Addresses) == 1 {
			text.WriteString(endpoints[i].Addresses[0])
			count++
		}
	}
	all, list := text.String(), make([]string, 0, count)
	for i := range endpoints {
		if addresses := endpoints[i].Addresses; len(addresses) == 1 {
			n, at := len(addresses[0]), len(list)
			list = append(list, all[:n])
			all = all[n:]
			endpoints[i].Addresses = list[at : at+1 : at+1]
		}
	}
}

func sharedBool(value *bool) *bool {
	if value == nil {
		return nil
	}
	return condition(*value)
}

// sameString returns before if it is the same text.
func sameString(before, text *string) *string {
	if before != nil && text != nil && *before == *text {
		return before
	}
	return text
}

func equalHints(a, b *discoveryv1.EndpointHints) bool {
	return a != nil && b != nil && slices.Equal(a.ForZones, b.ForZones) && slices.Equal(a.ForNodes, b.ForNodes)
}

// keys are the keys of labels and annotations that most slices have.
var keys = func() map[string]string {
	known := map[string]string{}
	for _, key := range []string{
		LabelSliceManagedBy, LabelService, LabelSourceCluster, LabelKubernetesService, LabelHeadless,
		AnnotationTriggerTime, AnnotationSnapshotPrefix + version1.name,
	} {
		known[key] = key
	}
	return known
}()

// compactKeys returns the pairs with shared keys.
func compactKeys(pairs map[string]string) map[string]string {
	result := make(map[string]string, len(pairs))
	for key, value := range pairs {
		if shared, known := keys[key]; known {
			key = shared
		}
		if value == Manager {
			value = Manager
		}
		result[key] = value
	}
	if pairs == nil {
		return nil
	}
	return result
}
