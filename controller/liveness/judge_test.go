// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

var limits = Limits{StaleAfter: 30 * time.Second}

// at is a moment, in seconds from when listening began.
func at(seconds int) time.Time {
	return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// members parses "west 5-100 200; north 205-300": ids and the seconds at which heartbeats arrive, every 5 s in a range, or
// once. Ticks pass until now.
func members(t testing.TB, now int, text string) []Member {
	t.Helper()
	texts := strings.FieldsFunc(text, func(r rune) bool { return r == ';' })
	all, heard := make([]Member, len(texts)), make([]map[int]bool, len(texts))
	for i, text := range texts {
		words := strings.Fields(text)
		all[i], heard[i] = Member{Cluster: words[0], Arrivals: Arrivals{Steady: at(0)}}, map[int]bool{}
		for _, word := range words[1:] {
			first, last, _ := strings.Cut(word, "-")
			from, err := strconv.Atoi(first)
			to, err2 := strconv.Atoi(cmp.Or(last, first))
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			for second := from; second <= to; second += 5 {
				heard[i][second] = true
			}
		}
	}
	for second := range now + 1 {
		for i := range all {
			if heard[i][second] {
				all[i].Arrivals = all[i].Arrivals.Received(at(second), "uid-1", limits)
			}
		}
		if second > 0 {
			tick(at(second), time.Second, all)
		}
	}
	return all
}

// tick is Tick for members.
func tick(now time.Time, passed time.Duration, members []Member) {
	var all []*Arrivals
	for i := range members {
		all = append(all, &members[i].Arrivals)
	}
	Tick(now, passed, all)
}

// judged returns the verdicts on members, as "west stale NoHeartbeat demote".
func judged(now time.Time, limits Limits, members []Member) string {
	var parts []string
	for _, m := range members {
		v := Judge(now, limits, m)
		part := fmt.Sprintf("%s %s %s", v.Cluster, v.State, v.Reason)
		if v.Demote {
			part += " demote"
		}
		if v.Keep {
			part += " keep"
		}
		if v.Token != "" {
			part += " " + v.Token
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// with parses other facts of the first member, and when the last member joined. It returns the limits.
func with(t *testing.T, members []Member, text string) Limits {
	t.Helper()
	l := limits
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		moment := func() time.Time {
			seconds, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			return at(seconds)
		}
		switch m := &members[0]; key {
		case "gone":
			l.GoneAfter = time.Hour
		case "unreachable":
			m.Path = Unreachable
		case "before":
			m.Before = ParseState(value)
		case "drained":
			m.Drained = true
		case "known":
			m.KnownUID = value
		case "confirmed":
			m.Confirmed = value
		case "mistaken":
			m.Mistaken = true
		case "otherset":
			m.OtherSet = true
		case "listed":
			m.ListedUID = value
		case "shrunk":
			m.Shrunk = moment()
		case "lost":
			m.Lost = moment()
		case "seen":
			m.Arrivals = m.Arrivals.Seen(moment(), "uid-1")
		case "joined":
			members[len(members)-1].Arrivals.Steady = moment()
		default:
			t.Fatal(field)
		}
	}
	return l
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name    string
		now     int
		members string // as in members
		with    string // as in with
		want    string
	}{
		{"not yet stale", 129, "west 5-100", "", "west fresh Alive"},
		{"stale", 130, "west 5-100", "", "west stale NoHeartbeat demote"},
		{"gone", 3700, "west 5-100", "gone", "west gone NoHeartbeat demote"},
		{"back at once", 3705, "west 5-100 3702", "gone", "west fresh Alive"},
		{"heard, and its pods are not reached", 104, "west 5-100", "gone unreachable", "west stale PodsUnreachable demote"},
		{"just joined", 29, "west", "", "west fresh Joining"},
		{"never heard", 30, "west", "", "west stale NoHeartbeat demote"},
		{"known as stale, and heard", 6, "west 5", "before=stale", "west fresh Alive"},
		{"known as gone", 1, "west", "gone before=gone", "west gone NoHeartbeat demote"},
		{"known as gone, where that is no longer asked for", 1, "west", "before=gone", "west stale NoHeartbeat demote"},
		{"known in a state that is none", 1, "west", "before=Stale", "west fresh Joining"},
		{"of a controller that is dead, a Lease can be read", 29, "west", "seen=20", "west fresh Joining"},
		{"a Lease of another cluster", 29, "west", "known=uid-0 seen=20", "west stale AnotherCluster demote keep uid-1"},
		{"drained", 101, "west 5-100", "drained", "west fresh Alive demote"},
		{"one of two", 130, "north 5-130; west 5-100", "", "north fresh Alive; west stale NoHeartbeat demote"},
		{"both at once", 111, "north 3-98; west 5-100", "", "north fresh Alive; west fresh Alive"},
		{"both at once, for long", 1e5, "north 3-98; west 5-100", "gone", "north stale NoHeartbeat demote; west stale NoHeartbeat demote"},
		{"the last of two", 230, "north 5-100; west 5-200", "", "north stale NoHeartbeat demote; west stale NoHeartbeat demote"},
		{"after it, both are back", 1014, "north 3-98 1010; west 5-100 1000", "", "north fresh Alive; west fresh Alive"},
		{"one just joined", 505, "north 3-98; west 5-100; south", "joined=500", "north stale NoHeartbeat demote; west stale NoHeartbeat demote; south fresh Joining"},
		{"times of our own are no failures", 441, "north 5-100 150-200 250-300 350-400 440; west 5-100 150-200 250-300 350-400 440", "", "north fresh Alive; west fresh Alive"},
		{"flaps", 221, "west 5-100 140 180 220", "", "west stale Flapping demote"},
		{"flaps, and did not stay", 319, "west 5-100 140 180 220 260 265-315", "", "west stale Flapping demote"},
		{"flaps, and stayed", 281, "west 5-100 140 180 220 225-280", "", "west fresh Alive"},
		{"failed long ago", 1000, "west 5-100 140 180 185-960 1000", "", "west fresh Alive"},
		{"another cluster", 101, "west 5-100", "known=uid-0", "west stale AnotherCluster demote keep uid-1"},
		{"another cluster, still the same at the second look", 306, "west 5-305", "known=uid-0", "west fresh Alive"},
		{"another cluster, silent in between", 306, "west 5-100 140-305", "known=uid-0", "west stale AnotherCluster demote keep uid-1"},
		{"of another set", 1001, "west 5-1000", "known=uid-1 otherset", "west stale OtherClusterSet demote keep"},
		{"of another set, another cluster, confirmed", 101, "west 5-100", "known=uid-0 otherset confirmed=uid-1", "west stale OtherClusterSet demote keep"},
		{"called otherwise, another cluster, confirmed", 101, "west 5-100", "known=uid-0 mistaken confirmed=uid-1", "west stale ClusterIDMismatch demote keep"},
		{"most exports lost, confirmed", 101, "west 5-100", "shrunk=90 lost=90 confirmed=2030-01-01T00:01:30Z", "west fresh Alive"},
		{"most exports lost, another list confirmed", 101, "west 5-100", "lost=90 confirmed=2030-01-01T00:00:30Z", "west stale ExportsLost demote keep 2030-01-01T00:01:30Z"},
		{"most exports lost for good", 391, "west 5-390", "shrunk=90 lost=90", "west fresh Alive"},
		{"an export lost, heartbeat not read since", 104, "west 5-100", "shrunk=103", "west fresh Alive keep"},
		{"a list of a cluster that is not heard", 104, "west 5-100", "listed=uid-2", "west fresh Alive keep"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			members := members(t, test.now, test.members)
			limits := with(t, members, test.with)
			if got := judged(at(test.now), limits, members); got != test.want {
				t.Errorf("got\n%s, want\n%s", got, test.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	second := time.Second
	for _, valid := range []Limits{{30 * second, 0}, {20 * second, 21 * second}} {
		if err := valid.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, invalid := range []Limits{{19 * second, 0}, {30 * second, 30 * second}, {30 * second, -second}} {
		if invalid.Validate() == nil {
			t.Errorf("%v is valid", invalid)
		}
	}
}

func TestLostMost(t *testing.T) {
	for _, lost := range [][2]int{{1, 0}, {2, 0}, {3, 0}, {3, 1}, {5, 2}} {
		if !LostMost(lost[0], lost[1]) {
			t.Errorf("%d of %d left are enough", lost[1], lost[0])
		}
	}
	for _, kept := range [][2]int{{0, 0}, {2, 1}, {4, 2}, {5, 9}} {
		if LostMost(kept[0], kept[1]) {
			t.Errorf("%d of %d left are not enough", kept[1], kept[0])
		}
	}
}
