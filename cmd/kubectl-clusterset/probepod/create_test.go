// SPDX-License-Identifier: Apache-2.0

package probepod

import (
	"context"
	"errors"
	"testing"
)

// TestCreationIsNotInterrupted: the API server may have created an object whose request was canceled.
func TestCreationIsNotInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	made, err := Whole(ctx, func(ctx context.Context) (string, error) {
		cancel()
		return "created", ctx.Err()
	})
	if made != "created" || err != nil {
		t.Errorf("interrupted: %q, %v", made, err)
	}
	made, err = Whole(ctx, func(context.Context) (string, error) { return "created", nil })
	if made != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %q, %v", made, err)
	}
}
