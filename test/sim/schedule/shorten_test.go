// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"slices"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/sim/schedule"
)

// TestShorten leaves of 40 events the three that make a schedule fail.
func TestShorten(t *testing.T) {
	var s schedule.Schedule
	for i := range uint64(40) {
		s.Events = append(s.Events, schedule.Event{Random: i})
	}
	has := func(s schedule.Schedule, random uint64) bool {
		return slices.ContainsFunc(s.Events, func(e schedule.Event) bool { return e.Random == random })
	}
	short := schedule.Shorten(s, 1000, func(s schedule.Schedule) bool { return has(s, 3) && has(s, 4) && has(s, 31) })
	if len(short.Events) != 3 || !has(short, 3) || !has(short, 4) || !has(short, 31) {
		t.Errorf("got %v", short.Events)
	}
	runs := 0
	schedule.Shorten(s, 10, func(schedule.Schedule) bool { runs++; return false })
	if runs != 10 {
		t.Errorf("%d runs, want 10", runs)
	}
}
