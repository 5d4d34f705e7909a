// SPDX-License-Identifier: Apache-2.0

package schedule

import "slices"

// Shorten returns a schedule with as few of the events as still fail, by delta debugging: it omits halves, quarters and
// so on. It calls fails at most runs times. fails(s) must be true.
func Shorten(s Schedule, runs int, fails func(Schedule) bool) Schedule {
	for parts := 2; len(s.Events) > 0 && runs > 0; {
		size := (len(s.Events) + parts - 1) / parts
		shorter := false
		for from := 0; from < len(s.Events) && runs > 0; runs-- {
			rest := s
			rest.Events = slices.Delete(slices.Clone(s.Events), from, min(from+size, len(s.Events)))
			if fails(rest) {
				s, shorter = rest, true
			} else {
				from += size
			}
		}
		switch {
		case shorter:
			parts = max(parts-1, 2)
		case size == 1:
			return s
		default:
			parts = min(2*parts, len(s.Events))
		}
	}
	return s
}
