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

// TestWait reports a state when it changes, and looks less and less often.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		begin, asked := time.Now(), 0
		err := Teller{Out: &out, Timeout: time.Minute}.Wait(t.Context(), func(context.Context) (string, error) {
			asked++
			return [...]string{"one", "one", "two", "two", "two", ""}[time.Since(begin)/(4*time.Second)], nil
		})
		if err != nil || asked < 15 || asked > 20 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		if told := out.String(); strings.Count(told, "one") != 1 || strings.Count(told, "two") != 1 {
			t.Errorf("told\n%s", told)
		}
	})
}

func TestWaitSaysWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		teller := Teller{Out: &bytes.Buffer{}, Timeout: time.Millisecond}
		err := teller.Wait(t.Context(), func(context.Context) (string, error) { return "the moon has to rise", nil })
		if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "the moon has to rise") {
			t.Errorf("got %v", err)
		}
		first := true
		err = teller.Wait(t.Context(), func(ctx context.Context) (string, error) {
			if first {
				first = false
				return "the moon has to rise", nil
			}
			<-ctx.Done()
			return "the sky: " + ctx.Err().Error(), nil
		})
		if err == nil || !strings.HasSuffix(err.Error(), ": the moon has to rise: see `kubectl clusterset check`") {
			t.Errorf("got %v", err)
		}
	})
}
