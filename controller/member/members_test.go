// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func secret(name, cluster, data string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Labels: map[string]string{ClusterLabel: cluster},
		},
		Data: map[string][]byte{KubeconfigKey: []byte(data)},
	}
}

// idle returns Members that are not read, with a function that reads their sources again.
func (s *surroundings) idle(t *testing.T, sources ...Source) (set *Members, refresh func()) {
	t.Helper()
	set = s.members(Config{
		Cluster: "east", Sources: sources, Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return set, func() { set.refresh(ctx, nil) }
}

// TestCredentialsChange: while the credential of a Secret is refused, its annotations take effect, and the connection stays. A
// member that was refused from the start is read once corrected. A problem is reported once, and again after the member was
// read.
func TestCredentialsChange(t *testing.T) {
	kubeconfigs := map[string]string{
		"good": kubeconfig(aToken, aServer), "other": kubeconfig(`{token: u}`, aServer), "bad": "{", "worse": "[", "none": "",
	}
	// Each step has the content of a Secret and the outcome of requests, and then the effects: a MemberChanged, a new
	// connection, reports, the kubeconfig in use, with ! if it is refused, the ranges, and the rank.
	for name, steps := range map[string][][2]string{
		"kubeconfig turns bad": {
			{"good", "changed connected good []"},
			{"bad", "refused good []"},
			{"bad drain", "changed good []"},
			{"bad drain 192.0.2.0/24", "changed good [192.0.2.0/24]"},
			{"good drain 192.0.2.0/24", "good [192.0.2.0/24]"},
		},
		"CIDR turns bad": {
			{"good 192.0.2.0/24 healthy", "changed connected good [192.0.2.0/24]"},
			{"good everywhere drain", "changed refused good [192.0.2.0/24]"},
			{"other everywhere drain", "changed connected other [192.0.2.0/24]"},
			{"other 198.51.100.0/24 drain", "changed other [198.51.100.0/24]"},
		},
		"CIDR turns empty": {
			{"good 192.0.2.0/24", "changed connected good [192.0.2.0/24]"},
			{"good ,", "changed refused good [192.0.2.0/24]"},
		},
		"CIDR bad from the start": {
			{"good everywhere", "changed connected refused good! []"},
			{"good everywhere drain", "changed good! []"},
			{"good 192.0.2.0/24 drain", "changed connected good [192.0.2.0/24]"},
		},
		"kubeconfig bad from the start": {
			{"bad", "changed connected refused ! []"},
			{"worse drain", "changed ! []"},
			{"good drain", "changed connected good []"},
		},
		"rank": {
			{"good 192.0.2.0/24 rank=last", "changed connected refused good! [192.0.2.0/24] 1001"},
			{"good rank=5", "changed connected good [] 5"},
			{"good rank=-3", "changed good [] -3"},
			{"good rank=1O", "changed refused good [] -3"},
			{"good rank=4", "changed good [] 4"},
		},
		"told again": {
			{"bad", "changed connected refused ! []"},
			{"bad", "! []"},
			{"none", "refused ! []"},
			{"good healthy", "changed connected good []"},
			{"bad", "refused good []"},
		},
		"unreachable": {
			{"bad", "changed connected refused ! []"},
			{"good failing", "changed connected failed good []"},
			{"good failing", "good []"},
			{"good healthy", "good []"},
			{"good failing", "failed good []"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			credential := secret("a", "west", "")
			var got []string
			set, refresh := (&surroundings{
				secrets:       func() []*corev1.Secret { return []*corev1.Secret{credential} },
				memberChanged: func(string) { got = append(got, "changed") },
				reported: func(problem Problem) {
					got = append(got, map[bool]string{true: "refused", false: "failed"}[problem.Refused])
				},
			}).idle(t)
			for i, step := range steps {
				is, rest, _ := strings.Cut(step[0], " ")
				credential = credential.DeepCopy()
				credential.Data[KubeconfigKey] = []byte(kubeconfigs[is])
				credential.Annotations = map[string]string{}
				for word := range strings.FieldsSeq(rest) {
					rank, ranked := strings.CutPrefix(word, "rank=")
					switch {
					case ranked:
						credential.Annotations[RankAnnotation] = rank
					case word == "drain":
						credential.Annotations["drain"] = "true"
					case word != "healthy" && word != "failing":
						credential.Annotations[CIDRsAnnotation] = word
					}
				}
				was := set.Get("west")
				got = nil
				refresh()
				m := set.Get("west")
				if m != was {
					got = append([]string{"connected"}, got...)
				}
				switch {
				case strings.Contains(rest, "healthy"):
					m.note(t.Context(), watchedSlices, nil)
					m.note(t.Context(), watchedHeartbeat, nil)
				case strings.Contains(rest, "failing"):
					m.note(t.Context(), watchedSlices, errors.New("connection refused"))
				}
				slices.Sort(got)
				force := ""
				for name, text := range kubeconfigs {
					if text == string(m.registration.Load().credential.kubeconfig) && m.Config() != nil {
						force = name
					}
				}
				if m.registration.Load().unread {
					force += "!"
				}
				got = append(got, force, fmt.Sprint(m.CIDRs()))
				if m.Rank() != 0 {
					got = append(got, fmt.Sprint(m.Rank()))
				}
				if text := strings.Join(got, " "); text != step[1] {
					t.Errorf("step %d, %s: got %q, want %q", i, step[0], text, step[1])
				}
				if m.Annotations()["drain"] != credential.Annotations["drain"] || m.Candidate().Object != credential {
					t.Errorf("step %d: the member has the Secret with the annotations %v", i, m.Annotations())
				}
			}
		})
	}
}

// TestServicesOfAMemberThatLeaves: all services that it published are reconciled without it, even services that were not
// imported. A list that the Tracker ignores does not become visible.
func TestServicesOfAMemberThatLeaves(t *testing.T) {
	for name, after := range map[string][]*corev1.Secret{
		"another credential": {secret("a", "west", kubeconfig(`{token: u}`, aServer))},
		"none":               nil,
	} {
		secrets := []*corev1.Secret{secret("a", "west", kubeconfig(aToken, aServer))}
		var set *Members
		var changed []string
		around := &surroundings{
			secrets: func() []*corev1.Secret { return secrets },
			serviceChanged: func(service types.NamespacedName) {
				m := set.Get("west")
				changed = append(changed, fmt.Sprintf("%s, published: %t", service.Name, m != nil && len(m.Services()) > 0))
			},
			heard: func(Heartbeat, bool) { changed = append(changed, "heard") },
		}
		set, refresh := around.idle(t)
		refresh()
		server := &pages{slices: []*discoveryv1.EndpointSlice{slice("web-1", "web", "1")}, most: pageSize}
		replace(t, set.Get("west"), server)
		left := set.Get("west")
		if left.hear(&coordinationv1.Lease{}, true); changed[len(changed)-1] != "heard" {
			t.Errorf("%s: the heartbeat of a member does not count: %q", name, changed)
		}
		changed, secrets = nil, after
		refresh()
		around.ignores = true
		if replace(t, left, &pages{most: pageSize}); left.Published() != 1 {
			t.Errorf("%s: an ignored list is visible", name)
		}
		if changed = slices.Compact(changed); !slices.Equal(changed, []string{"web, published: false"}) {
			t.Errorf("%s: told %q", name, changed)
		}
	}
}

// TestJoiningMembersAreMembers: when the handler is called for a new member, it finds all new members, so that no reconcile
// misses one. Each has its part of the memory.
func TestJoiningMembersAreMembers(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	around := having(secret("a", "west", good), secret("b", "north", good), secret("c", "south", "{"))
	var set *Members
	var joined, told []string
	around.tracked = func(m *Member) {
		if joined = append(joined, m.Cluster()); len(set.List()) != 3 {
			t.Errorf("%s joins, and there are %d members", m.Cluster(), len(set.List()))
		}
	}
	around.memberChanged = func(cluster string) {
		if told = append(told, cluster); len(joined) != 3 {
			t.Errorf("%s changed, and only %v joined", cluster, joined)
		}
	}
	set, refresh := around.idle(t)
	refresh()
	slices.Sort(told)
	if strings.Join(told, " ") != "north south west" {
		t.Errorf("told of %v", told)
	}
	if !set.memory.Claim("west", 1<<29+1) { // more than the half that is not reserved
		t.Error("no part of the memory is reserved for west")
	}
}
