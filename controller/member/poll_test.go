// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A fakeSource has what the test gives it.
type fakeSource struct {
	list []*Candidate
	err  error
}

func (*fakeSource) String() string { return "fake" }

func (f *fakeSource) List(context.Context) ([]*Candidate, error) {
	var list []*Candidate
	for _, each := range f.list {
		fresh := *each
		list = append(list, &fresh)
	}
	return list, f.err
}

func candidate(cluster, data string) *Candidate {
	return &Candidate{Cluster: cluster, Kind: "Thing", Name: "fleet/" + cluster, Kubeconfig: []byte(data)}
}

// TestMembersOfASource: members join and leave with their objects, and stay while the source is lost.
func TestMembersOfASource(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	objects := map[string]*Candidate{"west": candidate("west", good), "north": candidate("north", "{"), "west+": candidate("west", good)}
	objects["west+"].Annotations = map[string]string{RankAnnotation: "1"}
	objects["west'"] = candidate("west", good)
	objects["west'"].Name, objects["west'"].Annotations = "fleet/other", objects["west+"].Annotations
	for name, test := range map[string]struct {
		before string
		// steps are what the source has, or that it is lost, and the members, with ! if they are not read, and + with a rank. After "," it is reported.
		steps [][2]string
	}{
		"join and leave":                    {"", [][2]string{{"", ""}, {"west", "west"}, {"west", "west"}, {"west+", "west+"}, {"west north", "north! west"}, {"north", "north!"}}},
		"lost and back":                     {"", [][2]string{{"west", "west"}, {"lost", "west, lost"}, {"lost", "west"}, {"west", "west"}}},
		"missing, then installed":           {"", [][2]string{{"lost", ", lost"}, {"west", "west"}}},
		"the last one leaves":               {"", [][2]string{{"west", "west"}, {"", "west, lost"}, {"", ""}}},
		"uninstalled":                       {"", [][2]string{{"west", "west"}, {"", "west, lost"}, {"lost", "west, lost"}, {"", "west, lost"}, {"west", "west"}}},
		"restart while it is lost":          {"west gone", [][2]string{{"lost", "gone! west!, lost"}, {"lost", "gone! west!"}, {"west", "west"}}},
		"restart, and nothing is there yet": {"west", [][2]string{{"", "west!, lost"}, {"west", "west"}}},
		"restart, and the last one left":    {"west", [][2]string{{"", "west!, lost"}, {"", ""}}},
		"restart":                           {"west gone", [][2]string{{"west", "west"}}},
		"restart, and another has the id":   {"west", [][2]string{{"west' west", "west"}}},
	} {
		t.Run(name, func(t *testing.T) {
			reported := ""
			source := &fakeSource{}
			around := having()
			var before []*Candidate
			for cluster := range strings.FieldsSeq(test.before) {
				left := candidate(cluster, "")
				left.Source = source.String()
				before = append(before, left)
			}
			around.reported = func(problem Problem) {
				if problem.Source != "" {
					reported = ", lost"
				}
			}
			set, refresh := around.idle(t, source)
			for i, step := range test.steps {
				source.list, source.err = nil, nil
				for cluster := range strings.FieldsSeq(step[0]) {
					if cluster == "lost" {
						source.err = errors.New("the server could not find the requested resource")
						continue
					}
					source.list = append(source.list, objects[cluster])
				}
				reported = ""
				if i == 0 {
					set.Join(t.Context(), before)
				} else if set.readSources(t.Context()) {
					if refresh(); step == test.steps[i-1] {
						t.Errorf("step %d: candidates that did not change are parsed again", i)
					}
				}
				var members []string
				for _, m := range set.List() {
					members = append(members, m.Cluster())
					if m.source.Load().unread {
						members[len(members)-1] += "!"
					}
					if m.Rank() != 0 {
						members[len(members)-1] += "+"
					}
				}
				if got := strings.Join(members, " ") + reported; got != step[1] {
					t.Errorf("step %d: members %q, want %q", i, got, step[1])
				}
			}
		})
	}
}

// TestTrust: flags precede Secrets, and these the objects of an inventory, whatever their age. A candidate
// that is a member keeps its id from all that are not trusted more.
func TestTrust(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	old, young := time.Unix(1e9, 0).Add(-time.Hour), time.Unix(1e9, 0).Add(time.Hour)
	object := func(name string, created time.Time) *Candidate {
		return &Candidate{
			Cluster: "west", Source: "clusterprofile:fleet", Kind: "ClusterProfile", Name: "fleet/" + name, Created: created,
			Kubeconfig: []byte(good), Object: secret(name, "west", 0, good),
		}
	}
	first, later := secret("first", "west", 2*time.Hour, good), secret("later", "west", time.Minute, good)
	member := func(candidates ...*Candidate) map[string]bool {
		keys := map[string]bool{}
		for _, each := range candidates {
			keys[each.key()] = true
		}
		return keys
	}
	older, newer := object("older", old), object("newer", young)
	for name, test := range map[string]struct {
		static  []Static
		secrets []*corev1.Secret
		of      []*Candidate
		members map[string]bool
		want    string
	}{
		"an older object that is a member, and a Secret": {
			secrets: []*corev1.Secret{later}, of: []*Candidate{older}, members: member(older), want: "Secret later",
		},
		"a flag and all others":        {static: []Static{{Cluster: "west", Kubeconfig: "flag"}}, secrets: []*corev1.Secret{later}, of: []*Candidate{older}, want: "flag"},
		"two objects":                  {of: []*Candidate{newer, older}, want: "ClusterProfile fleet/older"},
		"two objects, one is a member": {of: []*Candidate{newer, older}, members: member(newer), want: "ClusterProfile fleet/newer"},
		"two objects, one was a member before a restart": {
			of:      []*Candidate{newer, older},
			members: member(&Candidate{Cluster: "west", Source: newer.Source, Kind: newer.Kind, Name: newer.Name}),
			want:    "ClusterProfile fleet/newer",
		},
		"two Secrets, one is a member": {
			secrets: []*corev1.Secret{first, later}, members: member(ofSecret(later)), want: "Secret later",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sources, problems := gather(having(test.secrets...).of(Config{Cluster: "east", Static: test.static}), test.of,
				test.members, nil)
			got := sources["west"].candidate.String()
			refused := slices.DeleteFunc(problems, func(p Problem) bool { return p.Candidate.String() == got })
			if got != test.want || len(refused) != len(test.static)+len(test.secrets)+len(test.of)-1 {
				t.Fatalf("the member is %s, want %s; problems %v", got, test.want, problems)
			}
			for _, problem := range refused {
				if !strings.Contains(problem.Err.Error(), "cluster id") || len(test.static) == 0 &&
					!strings.Contains(problem.Err.Error(), "already that of "+test.want) {
					t.Errorf("%s: %v", problem.Candidate, problem.Err)
				}
			}
		})
	}
}
