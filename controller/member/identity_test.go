// SPDX-License-Identifier: Apache-2.0

package member

import (
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
		holder, uid string
		// wrong are parts of the error, none where there is none.
		wrong []string
	}{
		"right":                         {"west", "uid-w", nil},
		"says nothing":                  {"", "", nil},
		"another name":                  {"east2", "uid-w", []string{"calls itself east2, the Secret says west"}},
		"the local cluster":             {"east", "uid-own", []string{"calls itself east", "same cluster as east"}},
		"the copy of the local cluster": {"west", "uid-own", []string{"same cluster as east"}},
	} {
		m := &Member{cluster: "west", heartbeat: &heartbeat{last: Heartbeat{Cluster: test.holder, KubeSystemUID: test.uid}}}
		m.source = parse(ofSecret(secret("a", "west", 0, "")))
		err := misidentified(m, "east", "uid-own")
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
		m.heartbeat.handler = memberLease{set, m}
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
	former := m
	m = join("esat") // the kubeconfig was corrected
	m.misidentified.Store(former.misidentified.Load())
	expect("corrected", true, m)
	hear(m, "3", "esat")
	expect("heard as it is", false, m, "a ok")
	hear(m, "4", "esat")
	expect("heard as before", false, m)
}
