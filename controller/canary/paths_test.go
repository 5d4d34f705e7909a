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
			text.WriteByte(map[liveness.Path]byte{liveness.Unknown: '?', liveness.Reachable: 'r', liveness.Unreachable: 'u'}[v.Path(cluster)])
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
	for name, test := range map[string]struct {
		left liveness.Path
		rows []string
		want string // the course of west
	}{
		"whole":                         {"", []string{"west/1 +++", "west/2 +++"}, "rrr"},
		"never reached":                 {"", []string{"west/1 " + times("-", 40), "west/2 " + times("-", 40)}, times("?", 40)},
		"cut":                           {"", []string{"west/1 +----", "west/2 +----"}, "rrruu"},
		"two lost probes":               {"", []string{"west/1 +--+", "west/2 +--+"}, "rrrr"},
		"a canary that is lost":         {"", []string{"west/1 +" + times("-", 60), "west/2 " + times("+", 61)}, times("r", 61)},
		"two of three":                  {"", []string{"west/1 +----", "west/2 +----", "west/3 +++++"}, "rrruu"},
		"a lone canary waits":           {"", []string{"west/1 +" + times("-", 32)}, times("r", 31) + "uu"},
		"refused, or busy, for as long": {"", []string{"west/1 +" + times("~", 99), "west/2 +" + times("~", 99)}, times("r", 100)},
		"unanswered is in a row, without those that are impaired": {"", []string{"west/1 +--~--~", "west/2 +--~--~"}, times("r", 7)},
		"a canary that never answered": {
			"",
			[]string{"west/1 " + times("+", 33), "west/2 " + times("-", 33), "west/3 " + times("-", 33)},
			times("r", 30) + "uuu",
		},
		"three answers end it":             {"", []string{"west/1 +---++++", "west/2 +-------"}, "rrruuurr"},
		"answers in a row":                 {"", []string{"west/1 +---++-++", "west/2 +--------"}, "rrruuuuuu"},
		"left as unreachable":              {liveness.Unreachable, []string{"west/1 --++++", "west/2 ------"}, "uuuurr"},
		"left as reachable, and cut since": {liveness.Reachable, []string{"west/1 " + times("-", 33), "west/2 " + times("-", 33)}, times("r", 30) + "uuu"},
		"a cut while the others fail":      {"", []string{"west/1 +--------", "west/2 +--------", "north/1 +++++----", "north/2 +++++----"}, "rrruuuuuu"},
		"a canary was lost long ago, and now all fail": {
			"",
			[]string{"west/1 +" + times("-", 20), "west/2 " + times("+", 11) + times("-", 10), "north/1 " + times("+", 11) + times("-", 10)},
			times("r", 13) + times("u", 8),
		},
		"it flaps": {
			"",
			[]string{"west/1 +" + times("---+++", 3) + times("+", 61), "west/2 +" + times("---+++", 3) + times("+", 61)},
			"rrruuurrruuurrruuu" + times("u", 60) + "rr",
		},
	} {
		t.Run(name, func(t *testing.T) {
			probes, offers := history(test.rows...)
			v := newPaths()
			v.Restore("west", test.left)
			for cluster, canaries := range offers {
				v.offer(at(0), cluster, canaries)
			}
			if got := course(v, "west", probes); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestOffer: new canaries begin anew. TestOffers has what a member offers no more.
func TestOffer(t *testing.T) {
	var changes []string
	v := NewPaths(limits, func(cluster string) { changes = append(changes, cluster) })
	probes, offers := history("west/1 +---", "west/2 +---")
	v.offer(at(0), "west", offers["west"])
	course(v, "west", probes)
	if v.Path("west") != liveness.Unreachable || len(changes) != 2 {
		t.Fatal(v.Path("west"), changes)
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
	if v.offer(at(5), "west", []Canary{named("west/3"), named("west/4")}); v.Path("west") != liveness.Unreachable {
		t.Error("new canaries that were not probed yet make it reachable")
	}
	if answered(2); v.Path("west") != liveness.Unreachable {
		t.Error("two answers are enough")
	}
	if answered(3); v.Path("west") != liveness.Reachable {
		t.Error("three answers are not enough")
	}
	v.probed(Probe{Cluster: "west", Canary: named("west/1").Address, Outcome: Answered})
	if v.probed(Probe{Cluster: "south"}); len(v.members) != 1 || len(changes) != 3 {
		t.Error("a canary that is not offered counts")
	}
	v.offer(at(20), "west", nil)
	if v.offer(at(50), "west", nil); v.Path("west") != liveness.Unknown || len(changes) != 4 {
		t.Errorf("without canaries it is %q", v.Path("west"))
	}
	v.Restore("west", "unreachable")
	if v.Restore("west", "else"); v.Path("west") != liveness.Unreachable {
		t.Error("an unknown word is a path")
	}
}
