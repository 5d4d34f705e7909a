// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

// A fakeSource returns the list and the error of the test.
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

// TestMembersOfASource: members join and leave with their objects, and stay while the source cannot be listed.
func TestMembersOfASource(t *testing.T) {
	good := kubeconfig(aToken, aServer)
	objects := map[string]*Candidate{"west": candidate("west", good), "north": candidate("north", "{"), "west+": candidate("west", good)}
	objects["west+"].Annotations = map[string]string{RankAnnotation: "1"}
	objects["west'"] = candidate("west", good)
	objects["west'"].Name, objects["west'"].Annotations = "fleet/other", objects["west+"].Annotations
	for name, test := range map[string]struct {
		before string
		// steps are the objects of the source, or lost, and the members: ! if not read, + with a rank. A report follows ",".
		steps [][2]string
	}{
		"join and leave":                  {"", [][2]string{{"", ""}, {"west", "west"}, {"west", "west"}, {"west+", "west+"}, {"west north", "north! west"}, {"north", "north!"}}},
		"lost and back":                   {"", [][2]string{{"west", "west"}, {"lost", "west, lost"}, {"lost", "west"}, {"west", "west"}}},
		"missing, then installed":         {"", [][2]string{{"lost", ", lost"}, {"west", "west"}}},
		"the last one leaves":             {"", [][2]string{{"west", "west"}, {"", "west, lost"}, {"", ""}}},
		"uninstalled":                     {"", [][2]string{{"west", "west"}, {"", "west, lost"}, {"lost", "west, lost"}, {"", "west, lost"}, {"west", "west"}}},
		"restart while it is lost":        {"west gone", [][2]string{{"lost", "gone! west!, lost"}, {"lost", "gone! west!"}, {"west", "west"}}},
		"restart, and the last one left":  {"west", [][2]string{{"", "west!, lost"}, {"", ""}}},
		"restart":                         {"west gone", [][2]string{{"west", "west"}}},
		"restart, and another has the id": {"west", [][2]string{{"west' west", "west"}}},
	} {
		t.Run(name, func(t *testing.T) {
			reported := ""
			ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) {
				if strings.Contains(line, "Cannot read a source") {
					reported = ", lost"
				}
			}, funcr.Options{}))
			source := &fakeSource{}
			around := having()
			var before []*Candidate
			for cluster := range strings.FieldsSeq(test.before) {
				left := candidate(cluster, "")
				left.Source = source.String()
				before = append(before, left)
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
					set.Join(ctx, before)
				} else if set.readSources(ctx) {
					if refresh(); step == test.steps[i-1] {
						t.Errorf("step %d: candidates that did not change are parsed again", i)
					}
				}
				var members []string
				for _, m := range set.List() {
					members = append(members, m.Cluster())
					if m.registration.Load().unread {
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
