// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// TestPodsUnreachable: what is said of the endpoints of a cluster whose pods are not reached.
func TestPodsUnreachable(t *testing.T) {
	for path, want := range map[string]string{
		"reachable":   "west is stale, and another cluster has a ready endpoint",
		"unreachable": "the pods of west are not reached (rule PodsUnreachable), and another cluster has a ready endpoint",
	} {
		source := &facts.Source{Cluster: "west", State: liveness.Stale, Member: &facts.Member{
			ID: "west", Lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				memberstate.StateAnnotation: "stale", memberstate.PathAnnotation: path,
			}}},
		}}
		endpoint := &discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}}
		endpoint.Conditions.Ready = new(bool)
		state, why := (&Explanation{}).endpoint(source, &discoveryv1.EndpointSlice{}, endpoint,
			map[string]bool{"10.1.0.1": true}, nil, merge.Role{})
		if state != Demoted || why != want {
			t.Errorf("path %s: got %s: %s, want %s", path, state, why, want)
		}
	}
}
