// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// version2 is version1 and the clusters that the slice is for. It is written for such slices alone: a reader that does
// not know it refuses them. Slices for all clusters have version1 alone.
var version2 = version{
	name: "v2", encoder: encoder2, decode: decode2, writes: func(slice *Slice) bool { return slice.Clusters != "" },
}

type document2 struct {
	Clusters string          `json:"clusters"`
	Export   json.RawMessage `json:"export"`
}

func encoder2(view *View) func(*Slice, []demotion) string {
	encode := encoder1(view)
	return func(slice *Slice, demoted []demotion) string {
		return string(marshal(document2{slice.Clusters, json.RawMessage(encode(slice, demoted))}))
	}
}

// ClustersOf returns the cluster selector in the snapshot of a published slice, empty if the slice is for all clusters or
// cannot be read.
func ClustersOf(slice *discoveryv1.EndpointSlice) string {
	decoded, _, err := readSnapshot(slice.Annotations, versions)
	if err != nil {
		return ""
	}
	return decoded.clusters.String()
}

func decode2(text string) (snapshot, error) {
	var in document2
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return snapshot{}, syntaxError(err)
	}
	clusters, err := selector.ParsePublished(in.Clusters)
	if err != nil {
		return snapshot{}, syntaxError(err)
	}
	if len(in.Export) == 0 {
		return snapshot{}, errors.New("it has no export")
	}
	out, err := decode1(string(in.Export))
	if err != nil {
		return snapshot{}, err
	}
	if out.clusters = clusters; clusters.All() {
		out.clusters = selector.Selector{}
	}
	return out, nil
}
