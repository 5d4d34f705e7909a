// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

var limits = Limits{Interval: 5 * time.Second, StaleAfter: 30 * time.Second}

// at is a moment, in seconds from when listening began.
func at(seconds int) time.Time {
	return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// members reads "west 5-100 200 205-300" of each: its id and when it was heard, at each 5 s from one moment to the other,
// or once. Ticks pass until now.
func members(t testing.TB, now int, texts ...string) []Member {
	t.Helper()
	all, heard := make([]Member, len(texts)), make([]map[int]bool, len(texts))
	for i, text := range texts {
		words := strings.Fields(text)
		all[i], heard[i] = Member{Cluster: words[0], Arrivals: Arrivals{Joined: at(0)}}, map[int]bool{}
		for _, word := range words[1:] {
			first, last, isRange := strings.Cut(word, "-")
			from, err := strconv.Atoi(first)
			if err != nil {
				t.Fatal(err)
			}
			to := from
			if isRange {
				if to, err = strconv.Atoi(last); err != nil {
					t.Fatal(err)
				}
			}
			for second := from; second <= to; second += 5 {
				heard[i][second] = true
			}
		}
	}
	for second := range now + 1 {
		for i := range all {
			if heard[i][second] {
				all[i].Arrivals = all[i].Arrivals.Heard(at(second), "uid-1", limits)
			}
		}
		if second > 0 {
			tick(at(second), time.Second, all)
		}
	}
	return all
}

// tick is Tick for members.
func tick(now time.Time, passed time.Duration, members []Member) (isolated bool) {
	return Tick(now, passed, limits, func(yield func(*Arrivals) bool) {
		for i := range members {
			if !yield(&members[i].Arrivals) {
				return
			}
		}
	})
}

// A judgement is what follows for all members.
type judgement struct {
	members  []Verdict
	isolated bool
}

// judgeAll judges members in the order of their clusters. The opinion is on the first one.
func judgeAll(now time.Time, limits Limits, members []Member, opinion Opinion) (j judgement) {
	j.isolated = tick(now, 0, members)
	for i, m := range members {
		if i > 0 {
			opinion = Opinion{}
		}
		j.members = append(j.members, Judge(now, limits, m, opinion))
	}
	return j
}

// text is a judgement as "isolated; west stale Silent demote".
func text(j judgement) string {
	var parts []string
	if j.isolated {
		parts = append(parts, "isolated")
	}
	for _, v := range j.members {
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

func TestJudge(t *testing.T) {
	gone := limits
	gone.GoneAfter = time.Hour
	flapped := "west 5-100 140 180 220" // three times silent for 40 s
	unreachable := Opinion{State: Stale, Reason: PodsUnreachable}
	tests := []struct {
		name    string
		now     int
		limits  Limits
		members []string
		change  func([]Member)
		opinion Opinion // of the first one
		want    string
	}{
		{name: "nobody to judge", want: ""},
		{name: "heard", now: 104, members: []string{"west 5-100"}, want: "west fresh Heard"},
		{name: "one heartbeat late", now: 109, members: []string{"west 5-100"}, want: "west fresh Heard"},
		{name: "not yet stale", now: 129, members: []string{"west 5-100"}, want: "west fresh Heard"},
		{name: "stale", now: 130, members: []string{"west 5-100"}, want: "west stale Silent demote"},
		{name: "stale for ever", now: 1e6, members: []string{"west 5-100"}, want: "west stale Silent demote"},
		{
			name: "gone is due", now: 131, limits: gone, members: []string{"west 5-100"},
			want: "west stale Silent demote",
		},
		{name: "gone", now: 3700, limits: gone, members: []string{"west 5-100"}, want: "west gone Silent demote"},
		{
			name: "back at once", now: 3705, limits: gone, members: []string{"west 5-100 3702"},
			want: "west fresh Heard",
		},

		{
			name: "heard, and its pods are not reached", now: 104, limits: gone, members: []string{"west 5-100"},
			opinion: unreachable,
			want:    "west stale PodsUnreachable demote",
		},
		{
			name: "nor is it heard", now: 131, members: []string{"west 5-100"},
			opinion: unreachable,
			want:    "west stale Silent demote",
		},
		{
			name: "gone counts from the last heartbeat", now: 3700, limits: gone, members: []string{"west 5-3700"},
			opinion: unreachable,
			want:    "west stale PodsUnreachable demote",
		},
		{
			name: "no member is heard, and the pods of one are not reached", now: 170,
			members: []string{"west 5-100", "north 5-100"},
			opinion: unreachable,
			want:    "isolated; west stale Silent demote; north stale Silent demote",
		},

		{name: "just joined", now: 29, members: []string{"west"}, want: "west fresh NotYetHeard"},
		{name: "never heard", now: 30, members: []string{"west"}, want: "west stale Silent demote"},
		{
			name: "known as stale", now: 1, members: []string{"west"},
			change: func(m []Member) { m[0].Before = Stale },
			want:   "west stale Silent demote",
		},
		{
			name: "known as stale, and heard", now: 6, members: []string{"west 5"},
			change: func(m []Member) { m[0].Before = Stale },
			want:   "west fresh Heard",
		},
		{
			name: "known as gone", now: 1, limits: gone, members: []string{"west"},
			change: func(m []Member) { m[0].Before = Gone },
			want:   "west gone Silent demote",
		},
		{
			name: "known as gone, where that is no longer asked for", now: 1, members: []string{"west"},
			change: func(m []Member) { m[0].Before = Gone },
			want:   "west stale Silent demote",
		},
		{
			name: "drained", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].Drained = true },
			want:   "west fresh Heard demote",
		},

		{
			name: "one of two", now: 130, members: []string{"north 5-130", "west 5-100"},
			want: "north fresh Heard; west stale Silent demote",
		},
		{
			name: "both at once", now: 111, members: []string{"north 3-98", "west 5-100"},
			want: "isolated; north fresh Heard; west fresh Heard",
		},
		{
			name: "both at once, for long", now: 1e5, limits: gone, members: []string{"north 3-98", "west 5-100"},
			want: "isolated; north stale Silent demote; west stale Silent demote",
		},
		{
			name: "both, one after the other", now: 150, members: []string{"north 5-100", "west 5-115"},
			want: "isolated; north stale Silent demote; west stale Silent demote",
		},
		{
			name: "the last of two", now: 230, members: []string{"north 5-100", "west 5-200"},
			want: "isolated; north stale Silent demote; west stale Silent demote",
		},
		{
			name: "all that were left", now: 400, members: []string{"north 5-100", "south 5-200", "west 5-200"},
			want: "isolated; north stale Silent demote; south stale Silent demote; west stale Silent demote",
		},
		{
			name: "after it, the other has its time", now: 1004, members: []string{"north 3-98", "west 5-100 1000"},
			want: "north stale Silent demote; west fresh Heard",
		},
		{
			name: "after it, the other stays away", now: 1018, members: []string{"north 3-98", "west 5-100 1000-1015"},
			want: "north stale Silent demote; west fresh Heard",
		},
		{
			name: "after it, both are back", now: 1014, members: []string{"north 3-98 1010", "west 5-100 1000"},
			want: "north fresh Heard; west fresh Heard",
		},
		{
			name: "nobody from the start", now: 1000, members: []string{"north", "west"},
			want: "isolated; north stale Silent demote; west stale Silent demote",
		},
		{
			name: "one joins meanwhile", now: 1000, members: []string{"north 3-98", "west 5-100", "south"},
			change: func(m []Member) { m[2].Arrivals.Joined = at(500) },
			want:   "isolated; north stale Silent demote; west stale Silent demote; south stale Silent demote",
		},
		{
			name: "one just joined", now: 505, members: []string{"north 3-98", "west 5-100", "south"},
			change: func(m []Member) { m[2].Arrivals.Joined = at(500) },
			want:   "isolated; north stale Silent demote; west stale Silent demote; south fresh NotYetHeard",
		},
		{
			name: "times of our own are no failures", now: 441,
			members: []string{"north 5-100 150-200 250-300 350-400 440", "west 5-100 150-200 250-300 350-400 440"},
			want:    "north fresh Heard; west fresh Heard",
		},

		{name: "failed twice", now: 181, members: []string{"west 5-100 140 180"}, want: "west fresh Heard"},
		{name: "flaps", now: 221, members: []string{flapped}, want: "west stale Flapping demote"},
		{
			name: "flaps, and did not stay", now: 279, members: []string{flapped + " 225-275"},
			want: "west stale Flapping demote",
		},
		{
			name: "flaps, and stayed", now: 281, members: []string{flapped + " 225-280"},
			want: "west fresh Heard",
		},
		{
			name: "failed long ago", now: 1000, members: []string{"west 5-100 140 180 185-960 1000"},
			want: "west fresh Heard",
		},

		{
			name: "another cluster", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].KnownUID = "uid-0" },
			want:   "west stale AnotherCluster demote keep uid-1",
		},
		{
			name: "another cluster, confirmed", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].KnownUID, m[0].Confirmed = "uid-0", "uid-1" },
			want:   "west fresh Heard",
		},
		{
			name: "another cluster, still the same at the second look", now: 306, members: []string{"west 5-305"},
			change: func(m []Member) { m[0].KnownUID = "uid-0" },
			want:   "west fresh Heard",
		},
		{
			name: "another cluster, silent in between", now: 306, members: []string{"west 5-100 140-305"},
			change: func(m []Member) { m[0].KnownUID = "uid-0" },
			want:   "west stale AnotherCluster demote keep uid-1",
		},
		{
			name: "another cluster, gone silent", now: 1000, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].KnownUID = "uid-0" },
			want:   "west stale Silent demote keep uid-1",
		},
		{
			name: "called otherwise", now: 1001, members: []string{"west 5-1000"},
			change: func(m []Member) { m[0].KnownUID, m[0].Mistaken = "uid-1", true },
			want:   "west stale ClusterIDMismatch demote keep",
		},
		{
			name: "called otherwise, UID not told", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].KnownUID, m[0].Mistaken, m[0].Arrivals.UID = "uid-1", true, "" },
			want:   "west stale ClusterIDMismatch demote keep",
		},
		{
			name: "of another set", now: 1001, members: []string{"west 5-1000"},
			change: func(m []Member) { m[0].KnownUID, m[0].OtherSet = "uid-1", true },
			want:   "west stale OtherClusterSet demote keep",
		},
		{
			name: "of another set, and never known", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].OtherSet = true },
			want:   "west stale OtherClusterSet demote keep",
		},
		{
			name: "of another set, another cluster", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].KnownUID, m[0].OtherSet = "uid-0", true },
			want:   "west stale AnotherCluster demote keep uid-1",
		},
		{
			name: "of another set, another cluster, confirmed", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].KnownUID, m[0].OtherSet, m[0].Confirmed = "uid-0", true, "uid-1" },
			want:   "west stale OtherClusterSet demote keep",
		},
		{
			name: "called otherwise, and never known", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].Mistaken = true },
			want:   "west fresh Heard keep",
		},
		{
			name: "called otherwise, another cluster, confirmed", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].KnownUID, m[0].Mistaken, m[0].Confirmed = "uid-0", true, "uid-1" },
			want:   "west fresh Heard",
		},
		{
			name: "most exports lost", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].Shrunk, m[0].Lost = at(90), at(90) },
			want:   "west stale ExportsLost demote keep 2030-01-01T00:01:30Z",
		},
		{
			name: "most exports lost, confirmed", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) {
				m[0].Shrunk, m[0].Lost, m[0].Confirmed = at(90), at(90), "2030-01-01T00:01:30Z"
			},
			want: "west fresh Heard",
		},
		{
			name: "most exports lost, another list confirmed", now: 101, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].Lost, m[0].Confirmed = at(90), "2030-01-01T00:00:30Z" },
			want:   "west stale ExportsLost demote keep 2030-01-01T00:01:30Z",
		},
		{
			name: "most exports lost for good", now: 391, members: []string{"west 5-390"},
			change: func(m []Member) { m[0].Shrunk, m[0].Lost = at(90), at(90) },
			want:   "west fresh Heard",
		},
		{
			name: "an export lost, heartbeat not read since", now: 104, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].Shrunk = at(103) },
			want:   "west fresh Heard keep",
		},
		{
			name: "an export lost, heartbeat read since", now: 104, members: []string{"west 5-100"},
			change: func(m []Member) { m[0].Shrunk = at(99) },
			want:   "west fresh Heard",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			members := members(t, test.now, test.members...)
			if test.change != nil {
				test.change(members)
			}
			if test.limits == (Limits{}) {
				test.limits = limits
			}
			if got := text(judgeAll(at(test.now), test.limits, members, test.opinion)); got != test.want {
				t.Errorf("got\n%s, want\n%s", got, test.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	second := time.Second
	tests := []struct {
		limits Limits
		want   string
	}{
		{Limits{5 * second, 30 * second, 0}, "<nil>"},
		{Limits{5 * second, 20 * second, 21 * second}, "<nil>"},
		{Limits{0, 30 * second, 0}, "heartbeat interval 0s: it must be positive"},
		{Limits{5 * second, 19 * second, 0}, "--stale-after 19s: use 20s or more, 4 heartbeats"},
		{
			Limits{5 * second, 30 * second, 30 * second},
			"--gone-after 30s: use 0 for never, or more than the 30s after which a member is stale",
		},
		{
			Limits{5 * second, 30 * second, -second},
			"--gone-after -1s: use 0 for never, or more than the 30s after which a member is stale",
		},
	}
	for _, test := range tests {
		if got := fmt.Sprint(test.limits.Validate()); got != test.want {
			t.Errorf("%v: got %q, want %q", test.limits, got, test.want)
		}
	}
}

func TestStatesAreReadAsTheyAreWritten(t *testing.T) {
	for _, state := range []State{Fresh, Stale, Gone} {
		if got := ParseState(state.String()); got != state {
			t.Errorf("%s is read as %s", state, got)
		}
	}
	for _, text := range []string{"", "Stale", "dead"} {
		if got := ParseState(text); got != Fresh {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

func TestLostMost(t *testing.T) {
	for _, test := range []struct {
		before, after int
		want          bool
	}{
		{0, 0, false},
		{1, 0, true},
		{2, 0, true},
		{2, 1, false},
		{3, 0, true},
		{3, 1, true},
		{4, 2, false},
		{5, 2, true},
		{5, 9, false},
	} {
		if got := LostMost(test.before, test.after); got != test.want {
			t.Errorf("%d of %d left: %v, want %v", test.after, test.before, got, test.want)
		}
	}
}

// TestSeenIsNotHeard: the Lease of a controller that is dead can be read.
func TestSeenIsNotHeard(t *testing.T) {
	m := Member{Cluster: "west", Arrivals: Arrivals{Joined: at(0)}, KnownUID: "uid-0"}
	m.Arrivals = m.Arrivals.Seen(at(20), "uid-1")
	if got, want := text(judgeAll(at(29), limits, []Member{m}, Opinion{})),
		"west stale AnotherCluster demote keep uid-1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m.KnownUID = "uid-1"
	if got, want := text(judgeAll(at(29), limits, []Member{m}, Opinion{})), "west fresh NotYetHeard"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := text(judgeAll(at(30), limits, []Member{m}, Opinion{})), "west stale Silent demote"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
