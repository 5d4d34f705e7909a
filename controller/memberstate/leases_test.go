// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestLeases: the next leader knows the origin of each member, the annotations that stay in force, and the time of the first
// heartbeat. While nothing changes, one Lease is applied again in each interval.
func TestLeases(t *testing.T) {
	client := fake.NewClientset()
	l := newLookout(t, nil, "west")
	if _, err := l.Recall(t.Context(), client.CoordinationV1(), "system"); err != nil {
		t.Fatal(err)
	}
	l.annotate("west", map[string]string{member.RankAnnotation: "2", AnnotationDrain: "true", AnnotationConfirm: "x"})
	l.pass(10, "west")
	for range 10 {
		if err := l.writeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.now.Step(time.Second)
	}
	if count := len(client.Actions()); count != 3 { // the list, the Lease, and once more
		t.Errorf("%d requests", count)
	}
	// The API server is restored from a backup without it.
	deleted := client.CoordinationV1().Leases("system").Delete(t.Context(), LeasePrefix+"west", metav1.DeleteOptions{})
	l.now.Step(liveness.HeartbeatInterval)
	if err := errors.Join(deleted, l.writeLeases(t.Context())); err != nil {
		t.Fatal(err)
	}
	next := newLookout(t, nil)
	before, err := next.Recall(t.Context(), client.CoordinationV1(), "system")
	if err != nil {
		t.Fatal(err)
	}
	has := l.of.Get("west").Candidate()
	if len(before) != 1 || before[0].Cluster != "west" || before[0].Source != "" || before[0].String() != has.String() ||
		before[0].Annotations[member.RankAnnotation] != "2" || before[0].Annotations[AnnotationDrain] != "true" ||
		before[0].Annotations[AnnotationConfirm] != "" {
		t.Errorf("the next leader knows %+v", before)
	}
	if is := next.recall(next.now.Now(), "west"); is.renewTime == nil {
		t.Error("the time of the heartbeat is lost")
	}
	written := next.writeLeases(t.Context()) // west is no member of it
	if list, err := client.CoordinationV1().Leases("system").List(t.Context(), metav1.ListOptions{}); written != nil || err != nil || len(list.Items) > 0 {
		t.Errorf("Leases %v, %v, %v", list, written, err)
	}
}

// TestLostAnswer: a Lease is written again, whatever it should be by then, if the answer to a write was lost.
func TestLostAnswer(t *testing.T) {
	client, lost := fake.NewClientset(), false
	client.PrependReactor("patch", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return lost, nil, errors.New("no answer")
	})
	l := newLookout(t, nil, "west")
	if _, err := l.Recall(t.Context(), client.CoordinationV1(), "system"); err != nil {
		t.Fatal(err)
	}
	for _, rank := range []string{"1", "2", "1"} {
		lost = rank == "2"
		l.annotate("west", map[string]string{member.RankAnnotation: rank})
		if err := l.writeLeases(t.Context()); (err != nil) != lost {
			t.Errorf("rank %s: %v", rank, err)
		}
	}
	if count := len(client.Actions()); count != 4 {
		t.Errorf("%d requests", count)
	}
}

// TestCandidateOf: the member of a source is known by its Lease, and no candidate is one whose origin is invalid.
func TestCandidateOf(t *testing.T) {
	for origin, want := range map[string]member.Candidate{
		"clusterprofile:x ClusterProfile x/west": {Source: "clusterprofile:x", Kind: "ClusterProfile", Name: "x/west"},
		"- Secret a/b":                           {Kind: "Secret", Name: "a/b"},
		"":                                       {},
	} {
		got := candidateOf("west", map[string]string{OriginAnnotation: origin})
		if got.Cluster != "west" || got.Err == nil || got.Source != want.Source || got.Kind != want.Kind || got.Name != want.Name {
			t.Errorf("%q: %+v", origin, got)
		}
	}
}
