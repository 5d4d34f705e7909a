// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMisidentified(t *testing.T) {
	for name, test := range map[string]struct {
		// members as <credential> <own word> <UID>, and the UID of the credential if any; the first is judged.
		members []string
		// wrong are parts of the error, none where there is none.
		wrong []string
	}{
		"right":        {[]string{"west west uid-w", "north north uid-n"}, nil},
		"says nothing": {[]string{"west _ _", "north _ _"}, nil},
		"another name": {
			[]string{"esat east2 uid-w"},
			[]string{"calls itself east2, the Secret says esat"},
		},
		"the local cluster": {
			[]string{"west east uid-own"},
			[]string{"calls itself east", "same cluster as east"},
		},
		"the copy of the local cluster": {[]string{"west west uid-own"}, []string{"same cluster as east"}},
		"one under two ids": {
			[]string{"west north uid-n", "north north uid-n"},
			[]string{"calls itself north", "same cluster as member north"},
		},
		"the right one of two ids": {[]string{"north north uid-n", "west north uid-n"}, nil},
		"both wrong": {
			[]string{"a c uid-c", "b c uid-c"},
			[]string{"calls itself c", "same cluster as member b"},
		},
		"its UID is copied": {[]string{"a a uid-a uid-a", "b b uid-a uid-b"}, nil},
		"a copied UID": {
			[]string{"b b uid-a uid-b", "a a uid-a uid-a"},
			[]string{"is uid-a, and was uid-b when it joined", "same cluster as member a"},
		},
		"its UID is copied by one whose UID is not known": {[]string{"a a uid-a uid-a", "b b uid-a _"}, nil},
		"a new cluster with its name":                     {[]string{"a a uid-2 uid-1"}, []string{"run `kubectl clusterset join` again"}},
		"a copy of another member":                        {[]string{"a a uid-c", "b b uid-c"}, []string{"same cluster as member b"}},
	} {
		var identities []identity
		for _, member := range test.members {
			words := strings.Fields(member)
			for i := range words {
				words[i] = strings.TrimPrefix(words[i], "_")
			}
			identities = append(identities, identity{words[0], words[1], words[2], "the Secret", append(words, "")[3]})
		}
		for range 2 {
			slices.Reverse(identities[1:])
			err := misidentified(identities[0], "east", "uid-own", identities)
			if (err == nil) != (test.wrong == nil) {
				t.Errorf("%s: got %v, want %q", name, err, test.wrong)
			}
			for _, part := range test.wrong {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("%s: got %v, want %q", name, err, part)
				}
			}
		}
	}
}

// TestIdentifyTellsOnce: who a member is is told when it changes, and not before the member said anything.
func TestIdentifyTellsOnce(t *testing.T) {
	var told []string
	around := &surroundings{
		kubeSystemUID: "uid-own",
		reported: func(problem Problem) {
			text := problem.Candidate.Name + " ok"
			if problem.Err != nil {
				text = problem.Candidate.Name + " " + problem.Err.Error()
			}
			if !problem.Misidentified || problem.Refused {
				text += ", of another kind"
			}
			told = append(told, text)
		},
	}
	set := around.members(Config{Cluster: "east"})
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	join := func(cluster string) *Member {
		m := newMember(cluster, now, func(types.NamespacedName) {}, func() {}, func(error) {})
		m.source = parse(&Candidate{Cluster: cluster, Kind: kindFlag})
		m.source.candidate.Store(ofSecret(secret("a", cluster, 0, "")))
		m.heartbeat.handler = memberLease{set, cluster}
		set.members.Store(newRoster(map[string]*Member{cluster: m}))
		set.identify()
		return m
	}
	hear := func(m *Member, version, name string) {
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: version,
				Annotations:     map[string]string{HeartbeatUIDAnnotation: "uid-w"},
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &name},
		}
		if err := m.heartbeat.Update(lease); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(step string, mistaken bool, m *Member, want ...string) {
		t.Helper()
		if len(told) != len(want) {
			t.Fatalf("%s: told %q, want %q", step, told, want)
		}
		for i := range want {
			if !strings.HasPrefix(told[i], want[i]) {
				t.Errorf("%s: told %q, want %q", step, told, want)
			}
		}
		if (m.Misidentified() != nil) != mistaken {
			t.Errorf("%s: mistaken is %t", step, !mistaken)
		}
		told = nil
	}
	m := join("esat")
	expect("joined", false, m)
	hear(m, "1", "west")
	expect("heard", true, m, "a this cluster calls itself west, the Secret says esat")
	hear(m, "2", "west")
	expect("heard again", true, m)
	hear(m, "3", "west2")
	expect("renamed", true, m, "a this cluster calls itself west2")
	m = join("west2") // the label of the Secret was corrected
	expect("corrected", false, m)
	hear(m, "3", "west2")
	expect("heard as it is", false, m, "a ok")
	hear(m, "4", "west2")
	expect("heard as before", false, m)
}

// TestMembersWithOneUID are told of both, and both times: while they have it, and when one of them has another.
func TestMembersWithOneUID(t *testing.T) {
	const members = 100
	told := map[string]int{}
	set := (&surroundings{reported: func(problem Problem) {
		if told[problem.Cluster]++; problem.Err == nil {
			told[problem.Cluster] = -1
		}
	}}).members(Config{Cluster: "east"})
	now, all := clocktesting.NewFakeClock(time.Unix(1e9, 0)), map[string]*Member{}
	for i := range members {
		cluster := fmt.Sprint("cluster-", i)
		m := newMember(cluster, now, func(types.NamespacedName) {}, func() {}, func(error) {})
		m.source = parse(&Candidate{Cluster: cluster, Kind: kindFlag})
		m.heartbeat.handler = memberLease{set, cluster}
		all[cluster] = m
	}
	set.members.Store(newRoster(all))
	set.identify()
	version := 0
	hear := func(cluster, uid string) {
		t.Helper()
		version++
		if err := all[cluster].heartbeat.Update(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: fmt.Sprint(version), Annotations: map[string]string{HeartbeatUIDAnnotation: uid},
			},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &cluster},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for cluster := range all {
		hear(cluster, "uid-of-"+cluster)
	}
	if len(told) > 0 {
		t.Errorf("told of %v", told)
	}
	hear("cluster-1", "uid-of-cluster-2")
	if told["cluster-1"] != 1 || told["cluster-2"] != 1 || len(told) != 2 {
		t.Errorf("of two that say the same, told of %v", told)
	}
	hear("cluster-1", "uid-of-cluster-1")
	if told["cluster-1"] != -1 || told["cluster-2"] != -1 || len(told) != 2 {
		t.Errorf("of two that said the same, told of %v", told)
	}
}
