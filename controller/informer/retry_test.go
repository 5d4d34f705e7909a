// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetry: an API server that is away for an hour is waited for, and asked about every 10 s.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, tries := time.Now(), 0
		err := Retry(t.Context(), func(context.Context) (bool, error) {
			tries++
			return time.Since(begin) > time.Hour, nil
		})
		if took := time.Since(begin); err != nil || took > time.Hour+12*time.Second || tries < 300 || tries > 400 {
			t.Errorf("got %v after %s and %d tries", err, took, tries)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := Retry(ctx, func(context.Context) (bool, error) { return false, nil }); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("got %v once the context ended", err)
		}
		failure := errors.New("no")
		if err := Retry(t.Context(), func(context.Context) (bool, error) { return false, failure }); !errors.Is(err,
			failure) {
			t.Errorf("got %v", err)
		}
	})
}
