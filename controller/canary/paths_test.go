// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

var limits = liveness.Limits{Interval: 5 * time.Second, StaleAfter: 30 * time.Second}

func at(second int) time.Time { return time.Unix(1e9+int64(second), 0) }

func newPaths() *Paths { return NewPaths(limits, func(string) {}) }

// named is the canary of a name that ends with its number, as "west/1".
func named(name string) Canary {
	address := netip.AddrFrom4([4]byte{10, name[0], name[1], name[len(name)-1]})
	return Canary{Address: netip.AddrPortFrom(address, 8081)}
}

// history is probes of canaries, one a second: "west/1 ++--~~." is answered, unanswered, impaired, and none.
func history(rows ...string) (probes []Probe, offers map[string][]Canary) {
	offers = map[string][]Canary{}
	for i, row := range rows {
		name, outcomes, _ := strings.Cut(row, " ")
		cluster, _, _ := strings.Cut(name, "/")
		offers[cluster] = append(offers[cluster], named(name))
		for second, mark := range outcomes {
			p := Probe{Cluster: cluster, Canary: named(name).Address, Began: at(second).Add(time.Duration(i) * 50 * time.Millisecond)}
			switch mark {
			case '+':
				p.Outcome, p.Ended = Answered, p.Began.Add(20*time.Millisecond)
			case '-':
				p.Outcome, p.Ended = Unanswered, p.Began.Add(750*time.Millisecond)
			case '~':
				p.Outcome, p.Ended = Impaired, p.Began.Add(20*time.Millisecond)
			default:
				continue
			}
			probes = append(probes, p)
		}
	}
	slices.SortStableFunc(probes, func(a, b Probe) int { return a.Ended.Compare(b.Ended) })
	return probes, offers
}

// course returns the path to a member at the end of each second, as "?ru": unknown, reachable, unreachable.
func course(v *Paths, cluster string, probes []Probe) string {
	var text strings.Builder
	second := 0
	show := func(until time.Time) {
		for ; !at(second + 1).After(until); second++ {
			text.WriteByte(map[Path]byte{Unknown: '?', Reachable: 'r', Unreachable: 'u'}[v.Of(cluster)])
		}
	}
	for _, p := range probes {
		show(p.Ended)
		v.probed(p)
	}
	show(at(second + 1))
	return text.String()
}

// times repeats a mark.
func times(mark string, number int) string { return strings.Repeat(mark, number) }

func TestPaths(t *testing.T) {
	for _, test := range []struct {
		name string
		rows []string
		left Path
		want string // the course of west
	}{
		{name: "whole", rows: []string{"west/1 +++", "west/2 +++"}, want: "rrr"},
		{name: "never reached", rows: []string{"west/1 " + times("-", 40), "west/2 " + times("-", 40)}, want: times("?", 40)},
		{name: "cut", rows: []string{"west/1 +----", "west/2 +----"}, want: "rrruu"},
		{name: "two lost probes", rows: []string{"west/1 +--+", "west/2 +--+"}, want: "rrrr"},
		{name: "a canary that is lost", rows: []string{"west/1 +" + times("-", 60), "west/2 " + times("+", 61)}, want: times("r", 61)},
		{
			name: "two of three", rows: []string{"west/1 +----", "west/2 +----", "west/3 +++++"}, want: "rrruu",
		},
		{
			name: "a lone canary waits", rows: []string{"west/1 +" + times("-", 32)},
			want: times("r", 31) + "uu",
		},
		{
			name: "refused, or busy, for as long",
			rows: []string{"west/1 +" + times("~", 99), "west/2 +" + times("~", 99)}, want: times("r", 100),
		},
		{
			name: "a restart", rows: []string{"west/1 +" + times("~", 28) + "++", "west/2 +" + times("~", 28) + "++"},
			want: times("r", 31),
		},
		{
			name: "unanswered is in a row, without those that are impaired", rows: []string{"west/1 +--~--~", "west/2 +--~--~"},
			want: times("r", 7),
		},
		{
			name: "a canary that never answered",
			rows: []string{"west/1 " + times("+", 33), "west/2 " + times("-", 33), "west/3 " + times("-", 33)},
			want: times("r", 30) + "uuu",
		},
		{
			name: "three answers end it", rows: []string{"west/1 +---++++", "west/2 +-------"}, want: "rrruuurr",
		},
		{
			name: "answers in a row", rows: []string{"west/1 +---++-++", "west/2 +--------"}, want: "rrruuuuuu",
		},
		{
			name: "left as unreachable", left: Unreachable, rows: []string{"west/1 --++++", "west/2 ------"}, want: "uuuurr",
		},
		{
			name: "left as reachable, and cut since", left: Reachable,
			rows: []string{"west/1 " + times("-", 33), "west/2 " + times("-", 33)}, want: times("r", 30) + "uuu",
		},
		{
			name: "another member answers", rows: []string{"west/1 +-----", "west/2 +-----", "north/1 ++++++", "north/2 ++++++"},
			want: "rrruuu",
		},
		{
			name: "no other member answers",
			rows: []string{"west/1 +" + times("-", 60), "west/2 +" + times("-", 60), "north/1 +" + times("-", 60)},
			want: "rrr" + times("u", 58),
		},
		{
			name: "and all return", rows: []string{"west/1 +----++++", "west/2 +----++++", "north/1 +---+++++"},
			want: "rrruuuurr",
		},
		{
			name: "and the other one returns",
			rows: []string{"west/1 +--------", "west/2 +--------", "north/1 +----++++"},
			want: "rrruuuuuu",
		},
		{
			name: "a cut while the others fail",
			rows: []string{"west/1 +--------", "west/2 +--------", "north/1 +++++----", "north/2 +++++----"},
			want: "rrruuuuuu",
		},
		{
			name: "the other one was never reached",
			rows: []string{"west/1 +----", "west/2 +----", "north/1 -----"}, want: "rrruu",
		},
		{
			name: "a canary was lost long ago, and now all fail",
			rows: []string{
				"west/1 +" + times("-", 20), "west/2 " + times("+", 11) + times("-", 10),
				"north/1 " + times("+", 11) + times("-", 10),
			},
			want: times("r", 13) + times("u", 8),
		},
		{
			name: "it flaps",
			rows: []string{
				"west/1 +" + times("---+++", 3) + times("+", 61),
				"west/2 +" + times("---+++", 3) + times("+", 61),
			},
			want: "rrruuurrruuurrruuu" + times("u", 60) + "rr",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			probes, offers := history(test.rows...)
			v := newPaths()
			v.Restore("west", string(test.left))
			for cluster, canaries := range offers {
				v.offer(at(0), cluster, canaries)
			}
			if got := course(v, "west", probes); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestOffer: new canaries begin anew, and none for a while is no path.
func TestOffer(t *testing.T) {
	var changes []string
	v := NewPaths(limits, func(cluster string) { changes = append(changes, cluster) })
	probes, offers := history("west/1 +---", "west/2 +---")
	v.offer(at(0), "west", offers["west"])
	course(v, "west", probes)
	if v.Of("west") != Unreachable || len(changes) != 2 {
		t.Fatal(v.Of("west"), changes)
	}
	if got := v.Opinion("west"); got.State != liveness.Stale || got.Reason != liveness.PodsUnreachable || v.Memory("west") != "unreachable" {
		t.Errorf("the opinion is %v", got)
	}
	if all := v.Witnesses(); len(all) != 2 || !all[0].Fails || all[0].Cluster != "west" || all[0].Address != named("west/1").Address {
		t.Errorf("the witnesses are %v", all)
	}
	answered := func(times int) {
		for i := range times {
			for _, name := range []string{"west/3", "west/4"} {
				v.probed(Probe{
					Cluster: "west", Canary: named(name).Address, Began: at(10 + i), Ended: at(10 + i), Outcome: Answered,
				})
			}
		}
	}
	if v.offer(at(5), "west", []Canary{named("west/3"), named("west/4")}); v.Of("west") != Unreachable {
		t.Error("new canaries that were not probed yet make it reachable")
	}
	if answered(2); v.Of("west") != Unreachable {
		t.Error("two answers are enough")
	}
	if answered(3); v.Of("west") != Reachable || v.Opinion("west") != (liveness.Opinion{}) {
		t.Error("three answers are not enough")
	}
	v.probed(Probe{Cluster: "west", Canary: named("west/1").Address, Outcome: Answered})
	if v.probed(Probe{Cluster: "south"}); len(v.members) != 1 || len(changes) != 3 {
		t.Error("a canary that is not offered counts")
	}
	v.offer(at(20), "west", nil)
	if v.offer(at(49), "west", nil); v.Of("west") != Reachable {
		t.Error("without canaries for a moment it is unknown")
	}
	if v.offer(at(50), "west", nil); v.Of("west") != Unknown || len(changes) != 4 || len(v.Witnesses()) > 0 {
		t.Errorf("without canaries it is %q", v.Of("west"))
	}
	if v.offer(at(90), "west", nil); len(changes) != 4 || len(v.members) > 0 {
		t.Error("it is forgotten twice")
	}
	v.Restore("west", "unreachable")
	if v.Restore("west", "else"); v.Of("west") != Unreachable {
		t.Error("an unknown word is a path")
	}
	if v.retain(map[string]bool{"north": true}); len(v.members) > 0 {
		t.Error("a member that left is known")
	}
}
