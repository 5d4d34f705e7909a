// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"time"

	"k8s.io/utils/clock"
)

// A fast clock runs at a multiple of real time, with an offset. The controller uses no timers of it.
type fast struct {
	clock.RealClock
	rate  time.Duration
	begin time.Time
	wrong time.Duration
}

// NewClock returns a clock that runs at rate times real time and is off by wrong.
func NewClock(rate int, wrong time.Duration) clock.WithTicker {
	return fast{rate: time.Duration(rate), begin: time.Now(), wrong: wrong}
}

func (f fast) Now() time.Time { return f.begin.Add(f.wrong + time.Since(f.begin)*f.rate) }

func (f fast) Since(t time.Time) time.Duration { return f.Now().Sub(t) }

func (f fast) After(d time.Duration) <-chan time.Time { return f.RealClock.After(d / f.rate) }

func (f fast) NewTicker(d time.Duration) clock.Ticker { return f.RealClock.NewTicker(d / f.rate) }
