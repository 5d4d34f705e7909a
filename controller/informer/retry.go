// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Retry calls a function, with backoff up to 10 s, until it is done, it fails, or the context ends.
func Retry(ctx context.Context, function wait.ConditionWithContextFunc) error {
	// Not wait.ExponentialBackoff, which gives up once the backoff reaches the cap.
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: 10 * time.Second}
	return backoff.DelayFunc().Until(ctx, true, false, function)
}
