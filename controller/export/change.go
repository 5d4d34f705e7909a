// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OwnSlices returns the successive states of one EndpointSlice of a Service of the local cluster, as the view exports
// them, whose Slices are not read. It returns false if a state is not exported or has a problem, which FromService
// reports, or if there is no state.
func OwnSlices(view *View, states []*discoveryv1.EndpointSlice) ([]Slice, bool) {
	var found problems
	result := make([]Slice, 0, len(states))
	for _, state := range states {
		slice, exported := ownSlice(view, state, &found)
		if !exported || len(found.list) > 0 {
			return nil, false
		}
		result = append(result, slice)
	}
	return result, len(result) > 0
}

// PublishedSlices returns the successive states of one slice that a member publishes, as FromSlices returns them. spec
// is that of the view. It returns false if a state has a problem, if its Service does not exist, or if the properties
// of the service differ between two states; then the view may have another spec. Without a state it returns false, too.
func PublishedSlices(from Source, service types.NamespacedName, spec *Spec, states []*discoveryv1.EndpointSlice,
) ([]Slice, bool) {
	result := make([]Slice, 0, len(states))
	var specText []byte
	for i, state := range states {
		r := viewReader{
			from: from, service: service,
			names: map[string]bool{}, refused: map[string]bool{}, badName: !validName(service.Name),
		}
		if !from.counts(state) {
			return nil, false
		}
		r.read(state)
		if len(r.readable) != 1 || r.readable[0].absent || len(r.found.list) > 0 {
			return nil, false
		}
		read := r.readable[0]
		if i > 0 && (!bytes.Equal(specText, read.specText) || read.Clusters != result[0].Clusters) {
			return nil, false
		}
		specText = read.specText
		read.Targets = ofPorts(read.Targets, spec.Ports)
		result = append(result, read.Slice)
	}
	return result, len(result) > 0
}
