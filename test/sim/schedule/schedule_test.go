// SPDX-License-Identifier: Apache-2.0

// Post-quantum key exchange takes most of the time of a handshake.
//go:debug tlsmlkem=0

package schedule_test

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim/schedule"
)

var (
	seeds = flag.Int("seeds", 100, "how many random schedules to run")
	seed  = flag.Uint64("seed", 1, "the seed of the first one")
)

// TestMain makes garbage collections rarer: schedules are short, and all their memory is garbage afterwards.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	m.Run()
}

// The first failing schedules are shortened. After a few more failures the rest is not run, because one defect fails
// many schedules.
const (
	toShorten = 2
	toFail    = 6
)

// TestSchedules runs random schedules. For a failing one it prints how to repeat it, and the shortest schedule that
// still fails.
func TestSchedules(t *testing.T) {
	var mu sync.Mutex
	var failed atomic.Int32
	var total schedule.Result
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range *seeds {
			s := schedule.New(*seed + uint64(i))
			t.Run(fmt.Sprint(s.Seed), func(t *testing.T) {
				t.Parallel()
				if failed.Load() >= toFail {
					return // the run has failed and reported why
				}
				result := schedule.Run(t, s)
				if len(result.Findings) > 0 {
					explain(t, s, result, failed.Add(1) <= toShorten)
				}
				mu.Lock()
				defer mu.Unlock()
				total.Changes += result.Changes
				total.Writes += result.Writes
			})
		}
	})
	t.Logf("%d seeds from %d, %.1f a second: %d operations and faults, %d objects written",
		*seeds, *seed, float64(*seeds)/time.Since(began).Seconds(), total.Changes, total.Writes)
}

// explain reports a failing schedule.
func explain(t *testing.T, s schedule.Schedule, first schedule.Result, shorten bool) {
	t.Helper()
	last, runs := first, 0
	if shorten {
		runs = 120
	}
	short := schedule.Shorten(s, runs, func(s schedule.Schedule) bool {
		result := schedule.Run(t, s)
		if len(result.Findings) > 0 {
			last = result
		}
		return len(result.Findings) > 0
	})
	t.Errorf("seed %d: run it again with\n\tgo test -trimpath -run TestSchedules ./test/sim/schedule -seeds=1 -seed=%d\n%s\n\nshortened from %d events to %d, in clusters c1 to c%d:\n%s\n\n%s",
		s.Seed, s.Seed, strings.Join(first.Findings, "\n"), len(s.Events), len(short.Events), s.Clusters,
		strings.Join(last.Log, "\n"), strings.Join(last.Findings, "\n"))
}
