// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
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

// TestUnauthorized: a member that rejects the credential is not called unreachable.
func TestUnauthorized(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		memberstate.StateAnnotation: "stale",
	}}}
	event := func(message string) []corev1.Event {
		return []corev1.Event{{Type: corev1.EventTypeWarning, Reason: memberstate.EventMemberUnreachable, Message: message}}
	}
	rejects := "no longer accepts the credential"
	for name, test := range map[string]struct {
		member facts.Member
		want   string
	}{
		"silent":       {facts.Member{}, "is down or unreachable"},
		"no answer":    {facts.Member{Events: event("connection refused")}, "is down or unreachable"},
		"unauthorized": {facts.Member{Events: event("heartbeat of cluster west: Unauthorized")}, rejects},
		"expires":      {facts.Member{Life: member.Life{Expires: now.Add(time.Second)}}, "is down or unreachable"},
		"expired":      {facts.Member{Life: member.Life{Expires: now}}, rejects},
	} {
		test.member.ID, test.member.Lease = "west", lease
		e := &Explanation{Cluster: "east", now: now}
		e.ofSource(&facts.Facts{ID: "east", Context: "east"}, service, &facts.Source{
			Cluster: "west", State: liveness.Stale, Member: &test.member,
		})
		if len(e.Problems) != 1 || !strings.Contains(e.Problems[0].What, test.want) {
			t.Errorf("%s: got %+v, want that it %s", name, e.Problems, test.want)
		}
	}
}
