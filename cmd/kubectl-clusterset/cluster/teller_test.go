// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWait reports a state when it changes, and looks less and less often. After the timeout it says what it waited for, even if
// the last look was interrupted.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		begin, asked := time.Now(), 0
		look := func(ctx context.Context) (string, error) {
			asked++
			if time.Since(begin) < 8*time.Second {
				return "one", nil
			} else if time.Since(begin) < 17*time.Second {
				return "two", nil
			}
			<-ctx.Done()
			return "the sky: " + ctx.Err().Error(), nil
		}
		err := Teller{Out: &out, Timeout: 19 * time.Second}.Wait(t.Context(), look)
		if !errors.Is(err, ErrTimeout) || !strings.HasSuffix(err.Error(), ": two: see `kubectl clusterset check`") ||
			asked < 14 || asked > 20 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		if told := out.String(); strings.Count(told, "one") != 1 || strings.Count(told, "two") != 1 {
			t.Errorf("told\n%s", told)
		}
		done := func(context.Context) (string, error) { return "", nil }
		if err := (Teller{Timeout: time.Minute}).Wait(t.Context(), done); err != nil {
			t.Error(err)
		}
	})
}
