// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// polls are the pauses between two calls of look: each may be a request to several clusters.
var polls = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Steps: 10, Cap: 2 * time.Second}

// ErrTimeout is the cause of a wait that timed out.
var ErrTimeout = errors.New("timed out")

// A Teller writes one line per event.
type Teller struct {
	// Out receives progress, usually standard error; Results receives results.
	Out, Results io.Writer
	// Timeout bounds each wait.
	Timeout time.Duration
}

// Did writes a result.
func (t Teller) Did(format string, args ...any) { fmt.Fprintf(t.Results, format+"\n", args...) }

// Wrote writes the result of a write, or of its dry run.
func (t Teller) Wrote(dryRun bool, format string, args ...any) {
	if dryRun {
		format += " (dry run)"
	}
	t.Did(format, args...)
}

// Say writes progress.
func (t Teller) Say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// Wait polls look, at first often and then every two seconds, until it returns an
// empty text or an error. The text says what is waited for; Wait reports it when
// it changes. After a timeout the error wraps ErrTimeout and has the last text.
func (t Teller) Wait(ctx context.Context, look func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Timeout, ErrTimeout)
	defer cancel()
	var told string
	err := polls.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		waiting, err := look(ctx)
		switch {
		case err == nil && waiting == "":
			return true, nil
		case ctx.Err() != nil: // an interrupted look says little
			told = cmp.Or(told, waiting)
			return false, nil //nolint:nilerr // The poll ends with the cause.
		case err == nil && waiting != told:
			t.Say("  … %s", waiting)
			told = waiting
		}
		return false, err
	})
	if err != nil && errors.Is(context.Cause(ctx), ErrTimeout) {
		return fmt.Errorf("%w after %s: %s: see `kubectl clusterset check`", ErrTimeout, t.Timeout, told)
	}
	return err
}
