// SPDX-License-Identifier: Apache-2.0

package probepod

import (
	"context"
	"time"
)

// createTimeout bounds the creation of an object.
const createTimeout = 30 * time.Second

// Whole calls create unless ctx has ended. If ctx ends meanwhile, the request goes on: the API server may have created
// the object, which then has to be known to be deleted. It takes 30 s at most.
func Whole[T any](ctx context.Context, create func(context.Context) (T, error)) (made T, err error) {
	if err := ctx.Err(); err != nil {
		return made, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	return create(ctx)
}
