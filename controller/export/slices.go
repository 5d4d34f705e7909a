// SPDX-License-Identifier: Apache-2.0

package export

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Source is where slices were read from, and what it may say.
type Source struct {
	// Cluster is the id of the cluster that the slices speak for: the one at
	// whose API server they were read, or the one whose copies they are.
	Cluster string
	// CIDRs confine the addresses of endpoints; all are allowed where empty.
	CIDRs []netip.Prefix
}

// FromSlices is the view of another cluster's export, or of this one's, from
// the slices that carry its snapshots: those that the exporting cluster
// publishes, or the copies of them in this cluster. They need no order.
//
// Nothing of a slice is believed unchecked. What is not valid is left out and
// reported. A slice that is refused as a whole (an unknown version, a snapshot
// that does not parse) stays as previous has it, the view of the same export
// made before, which may be nil. The view is nil where nothing is left: with
// no slices the service is not exported.
func FromSlices(from Source, service types.NamespacedName, slices []*discoveryv1.EndpointSlice, previous *View) (*View, []Problem) {
	return nil, nil
}
