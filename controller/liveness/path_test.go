// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// named is the probe target with that number.
func named(number byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, number}), 8081)
}

// history is probes of probe targets, one a second: "++--~~." is answered, unanswered, impaired, and none.
func history(rows ...string) (probes []Probe, targets []netip.AddrPort) {
	for i, row := range rows {
		target := named(byte(i + 1))
		targets = append(targets, target)
		for second, mark := range row {
			p := Probe{Target: target, Began: at(second).Add(time.Duration(i) * 50 * time.Millisecond)}
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
	return probes, targets
}

// course returns the path to a member at the end of each second, as "?ru": unknown, reachable, unreachable.
func course(m *Member, probes []Probe) string {
	var text strings.Builder
	second := 0
	show := func(until time.Time) {
		for ; !at(second + 1).After(until); second++ {
			text.WriteByte(map[Path]byte{Unknown: '?', Reachable: 'r', Unreachable: 'u'}[m.Path])
		}
	}
	for _, p := range probes {
		show(p.Ended)
		m.Probed(p, limits)
	}
	show(at(second + 1))
	return text.String()
}

// times repeats a mark.
func times(mark string, number int) string { return strings.Repeat(mark, number) }

func TestPaths(t *testing.T) {
	for name, test := range map[string]struct {
		left Path
		rows []string
		want string // the course
	}{
		"never reached":         {"", []string{times("-", 40), times("-", 40)}, times("?", 40)},
		"a target that is lost": {"", []string{"+" + times("-", 60), times("+", 61)}, times("r", 61)},
		"two of three":          {"", []string{"+----", "+----", "+++++"}, "rrruu"},
		"a lone target waits":   {"", []string{"+" + times("-", 32)}, times("r", 31) + "uu"},
		"unanswered is in a row, without those that are impaired": {"", []string{"+--~--~", "+--~--~"}, times("r", 7)},
		"a target that never answered": {
			"",
			[]string{times("+", 33), times("-", 33), times("-", 33)},
			times("r", 30) + "uuu",
		},
		"three answers end it":             {"", []string{"+---++++", "+-------"}, "rrruuurr"},
		"answers in a row":                 {"", []string{"+---++-++", "+--------"}, "rrruuuuuu"},
		"left as unreachable":              {Unreachable, []string{"--++++", "------"}, "uuuurr"},
		"left as reachable, and cut since": {Reachable, []string{times("-", 33), times("-", 33)}, times("r", 30) + "uuu"},
		"a target was lost long ago, and now all fail": {
			"",
			[]string{"+" + times("-", 20), times("+", 11) + times("-", 10)},
			times("r", 13) + times("u", 8),
		},
		"it flaps": {
			"",
			[]string{"+" + times("---+++", 3) + times("+", 61), "+" + times("---+++", 3) + times("+", 61)},
			"rrruuurrruuurrruuu" + times("u", 60) + "rr",
		},
	} {
		t.Run(name, func(t *testing.T) {
			probes, targets := history(test.rows...)
			m := Member{Path: test.left}
			m.Offered(targets)
			if got := course(&m, probes); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestOffered: new probe targets begin without results, and the path to a member that has none is forgotten.
func TestOffered(t *testing.T) {
	var m Member
	expect := func(what string, path Path, targets ...byte) {
		t.Helper()
		var got []byte
		for _, each := range m.ProbedTargets {
			got = append(got, each.Address.Addr().As4()[3])
		}
		if m.Path != path || !slices.Equal(got, targets) {
			t.Errorf("%s: the path is %q, judged by %v", what, m.Path, got)
		}
	}
	answered := func(targets ...byte) {
		for _, each := range targets {
			m.Probed(Probe{Target: named(each), Began: at(10), Ended: at(10), Outcome: Answered}, limits)
		}
	}
	probes, targets := history("+---", "+---")
	m.Offered(targets)
	course(&m, probes)
	expect("all are cut", Unreachable, 1, 2)
	m.Offered([]netip.AddrPort{named(3), named(4)})
	answered(3, 4, 3, 4)
	expect("two answers of new ones", Unreachable, 3, 4)
	m.Offered([]netip.AddrPort{named(3), named(4)})
	answered(3, 4)
	expect("three answers", Reachable, 3, 4)
	answered(1)
	expect("one that is not offered answers", Reachable, 3, 4)
	m.Offered(nil)
	expect("none", Unknown)
}
