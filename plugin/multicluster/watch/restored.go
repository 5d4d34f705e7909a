// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// early is how long before its timeout a watch may end and still count as timed out.
const early = time.Second

// unlessRestored opens a watch again after it broke only if the API server is as far as the watch was. One whose etcd
// was restored from a backup is not: it would send nothing until its revisions reach those of before. The error makes
// the reflector list everything. A watch that breaks costs a list of one object, and no more if nothing was restored.
func unlessRestored(from lister) lister {
	var until time.Time // when the last watch ends by itself; a reflector opens one at a time
	list, watch := from.list, from.watch
	from.watch = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		if options.SendInitialEvents == nil && time.Until(until) > early {
			present, err := list(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return nil, err
			}
			if accessor, err := meta.ListAccessor(present); err == nil &&
				before(accessor.GetResourceVersion(), options.ResourceVersion) {
				until = time.Time{}
				return nil, apierrors.NewResourceExpired("the API server was restored: its resourceVersion is " +
					accessor.GetResourceVersion() + ", and that of the watch " + options.ResourceVersion)
			}
		}
		begun := time.Now()
		w, err := watch(ctx, options)
		if err == nil && options.TimeoutSeconds != nil {
			until = begun.Add(time.Duration(*options.TimeoutSeconds) * time.Second)
		}
		return w, err
	}
	return from
}

// before compares resourceVersions, which are numbers that grow (KEP-5504). Others are never before one another.
func before(a, b string) bool {
	first, err1 := strconv.ParseUint(a, 10, 64)
	second, err2 := strconv.ParseUint(b, 10, 64)
	return err1 == nil && err2 == nil && first < second
}
