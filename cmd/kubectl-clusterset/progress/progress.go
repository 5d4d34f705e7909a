// SPDX-License-Identifier: Apache-2.0

// Package progress tells a person what is being waited for.
package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	pollInterval = 200 * time.Millisecond
	// reminder is how often one state is told while it lasts.
	reminder = 10 * time.Second
)

// ErrTimeout is why a wait ended whose time was up.
var ErrTimeout = errors.New("the time was up")

// A Teller writes one line for each thing that happens.
type Teller struct {
	// Out is where progress goes, standard error as a rule; Results is where
	// what was done goes.
	Out, Results io.Writer
	// Timeout bounds each wait.
	Timeout time.Duration
}

// Did writes one line of what was done.
func (t Teller) Did(format string, args ...any) { fmt.Fprintf(t.Results, format+"\n", args...) }

// Say writes one line of progress.
func (t Teller) Say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// Wait asks, five times a second, until nothing is left to wait for, and tells
// what is whenever that changes, and every ten seconds. look returns what is
// waited for, in words, empty where it is over; an error of it ends the wait.
// When the time is up the error wraps ErrTimeout and says what was waited for
// last.
func (t Teller) Wait(ctx context.Context, look func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Timeout, ErrTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	begin := time.Now()
	var told string
	var toldAt time.Time
	for {
		waiting, err := look(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
		case err != nil:
			return err
		case waiting == "":
			return nil
		case waiting != told || time.Since(toldAt) >= reminder:
			// What is there at once is not worth a line.
			if time.Since(begin) >= pollInterval {
				t.Say("  … %s (%s)", waiting, time.Since(begin).Round(time.Second))
				toldAt = time.Now()
			}
			told = waiting
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrTimeout) {
				return fmt.Errorf("%w after %s: %s", ErrTimeout, t.Timeout, told)
			}
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
