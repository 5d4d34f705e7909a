// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"
	"time"
)

// isolation returns the times in which the local cluster was probably isolated, in order and disjoint: no member was
// heard, and at least two had fallen silent together. Each begins only when the silence is recognised, so that the
// result for a past time never changes.
func isolation(now time.Time, limits Limits, members []Member) []Silence {
	if len(members) < 2 {
		return nil
	}
	nobody := everywhere(members[0], now, limits)
	for _, member := range members[1:] {
		nobody = intersect(nobody, everywhere(member, now, limits))
	}
	var isolated []Silence
	for _, silence := range nobody {
		if silence.From.IsZero() {
			silence.From = secondJoined(members)
		}
		recognised := silence.From.Add(limits.quiet())
		if recognised.Before(silence.Until) && together(silence.From, now, limits, members) {
			isolated = append(isolated, Silence{recognised, silence.Until})
		}
	}
	return isolated
}

// everywhere returns the silences of a member and the time before it joined, so that a member that joins an isolated
// cluster changes nothing. A member that was never heard is silent.
func everywhere(member Member, now time.Time, limits Limits) []Silence {
	if member.Arrivals.Last.IsZero() {
		return []Silence{{Until: now}}
	}
	silences := slices.Clone(member.Arrivals.silences(now, limits))
	if len(silences) > 0 && silences[0].From.Equal(member.Arrivals.Joined) {
		silences[0].From = time.Time{}
		return silences
	}
	return append([]Silence{{Until: member.Arrivals.Joined}}, silences...)
}

// secondJoined returns when the second member joined.
func secondJoined(members []Member) time.Time {
	joined := make([]time.Time, len(members))
	for i, member := range members {
		joined[i] = member.Arrivals.Joined
	}
	slices.SortFunc(joined, time.Time.Compare)
	return joined[1]
}

// together reports whether at least two members fell silent at a moment or shortly before. Their phases differ by up to
// one interval, and one heartbeat may have been late.
func together(moment, now time.Time, limits Limits, members []Member) bool {
	fell := 0
	for _, member := range members {
		for _, silence := range member.Arrivals.silences(now, limits) {
			if before := moment.Sub(silence.From); before >= 0 && before <= limits.quiet() &&
				silence.Until.After(moment) {
				fell++
				break
			}
		}
	}
	return fell >= 2
}

// counted returns the length of a silence without the times in which the local cluster was isolated.
func counted(silence Silence, isolated []Silence) time.Duration {
	length := silence.Until.Sub(silence.From)
	for _, each := range intersect([]Silence{silence}, isolated) {
		length -= each.Until.Sub(each.From)
	}
	return length
}

// intersect returns the times that are in both lists. The lists and the result are in order.
func intersect(a, b []Silence) []Silence {
	var both []Silence
	for len(a) > 0 && len(b) > 0 {
		from, until := a[0].From, a[0].Until
		if b[0].From.After(from) {
			from = b[0].From
		}
		if b[0].Until.Before(until) {
			until = b[0].Until
		}
		if from.Before(until) {
			both = append(both, Silence{from, until})
		}
		if a[0].Until.Before(b[0].Until) {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}
