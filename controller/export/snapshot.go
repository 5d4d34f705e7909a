// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// A snapshot is a slice's part of an export, in the format of AnnotationSnapshot; decoding checks its syntax and nothing
// else. Fields may be added if readers that do not know them can ignore them; every other change makes another version.
type snapshot struct {
	Cluster  string `json:"cluster"`
	Clusters string `json:"clusters,omitempty"`
	// Absent is set for an export without its Service, which has no spec: see View.Absent.
	Absent bool `json:"absent,omitempty"`
	// Service is nil if the export is absent. All slices of an export have it; readers use the first valid one.
	Service *Spec `json:"service,omitempty"`
	Slice   struct {
		Slice
		// Demoted are the ascending indices of ready endpoints that a merge demoted.
		Demoted []int `json:"demoted,omitempty"`
	} `json:"slice"`

	// clusters is the decoded selector, the zero Selector for a slice that is for all clusters.
	clusters scope.Selector
}

// Annotations returns the annotations of a published slice of a view or its copy in a new map: the snapshot and the trigger
// time. demoted are the ascending indices of endpoints that a merge demotes; they are ready in the view.
func (v *View) Annotations(slice *Slice, demoted []int) map[string]string {
	out := snapshot{Cluster: v.Cluster, Clusters: slice.Clusters, Absent: v.Absent(), Service: v.Spec}
	out.Slice.Slice, out.Slice.Demoted = *slice, demoted
	annotations := map[string]string{AnnotationSnapshot: string(marshal(out))}
	if slice.TriggerTime != "" {
		annotations[AnnotationTriggerTime] = slice.TriggerTime
	}
	return annotations
}

// maxSnapshot bounds one snapshot in bytes, to the API server's limit for all annotations of an object.
const maxSnapshot = 256 << 10

// readSnapshot decodes the snapshot of a slice, and sets the address type and clusters of its Slice.
func readSnapshot(slice *discoveryv1.EndpointSlice) (snapshot, error) {
	text, found := slice.Annotations[AnnotationSnapshot]
	if !found {
		for _, key := range slices.Sorted(maps.Keys(slice.Annotations)) {
			if version, found := strings.CutPrefix(key, AnnotationSnapshotPrefix); found {
				return snapshot{}, fmt.Errorf("its snapshot is of unknown version %.100q; upgrade this controller", version)
			}
		}
		return snapshot{}, fmt.Errorf("it has no snapshot")
	}
	if len(text) > maxSnapshot {
		return snapshot{}, fmt.Errorf("its snapshot has %d bytes; the limit is %d", len(text), maxSnapshot)
	}
	var out snapshot
	err := json.Unmarshal([]byte(text), &out)
	if err == nil && out.Clusters != "" {
		out.clusters, err = scope.ParseAbsolute(out.Clusters)
	}
	if err != nil {
		return snapshot{}, fmt.Errorf("its snapshot does not parse: %s", Cut(err.Error(), 200))
	}
	out.Slice.AddressType, out.Slice.Clusters = slice.AddressType, out.Clusters
	return out, nil
}

// ClustersOf returns the cluster selector in the snapshot of a published slice, empty if the slice is for all clusters or
// cannot be read.
func ClustersOf(slice *discoveryv1.EndpointSlice) string {
	decoded, _ := readSnapshot(slice)
	return decoded.Slice.Clusters
}

// marshal returns compact JSON without HTML escapes. The value must always marshal.
func marshal(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("export: %T cannot be marshalled: %v", value, err))
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}
