// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// An origin tells one state of one etcd from others.
type origin struct {
	// version is the current resourceVersion, 0 if it is not a number.
	version uint64
	// uid is the KubeSystemUID of the heartbeat, empty if there is none.
	uid string
}

// versionOf returns a resourceVersion as a number, 0 if it is none.
func versionOf(resourceVersion string) uint64 {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// A resumer opens the watches of a reflector. It opens a watch that ended again from the last resourceVersion, unless
// the etcd was restored from a backup or is that of another cluster (docs/design.md, "Watches"). One reflector uses it,
// which may abandon a list without waiting.
type resumer struct {
	// read reads the heartbeat now, not from a cache. If it is nil, each watch is preceded by a list.
	read func(context.Context) (origin, error)
	// listed is the origin of the last list, or of the last watch that was opened again.
	listed atomic.Pointer[origin]
	// incomplete is set if the last list may be incomplete: a watch after it is not opened again, so that the next list
	// comes soon.
	incomplete atomic.Bool
	// opened reports whether a watch was opened after the last list.
	opened atomic.Bool
	// unopened counts the last lists that no watch could follow. Only open uses it.
	unopened int
}

// open opens a watch with client. It returns informer.ErrBroken if all objects must be listed again.
func (r *resumer) open(ctx context.Context, options metav1.ListOptions,
	client func(context.Context, metav1.ListOptions) (watch.Interface, error),
) (watch.Interface, error) {
	again := r.opened.Load()
	if again {
		if err := r.resumable(ctx, options.ResourceVersion); err != nil {
			return nil, err
		}
	}
	opened, err := client(ctx, options)
	switch {
	case err == nil:
		r.opened.Store(true)
		r.unopened = 0
	case !again && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTooManyRequests(err):
		r.wait(ctx)
	}
	return opened, err
}

// resumable returns an error if a watch cannot be opened again from a resourceVersion.
func (r *resumer) resumable(ctx context.Context, resourceVersion string) error {
	listed := r.listed.Load()
	if r.read == nil || listed == nil || r.incomplete.Load() {
		return informer.ErrBroken
	}
	now, err := r.read(ctx)
	switch {
	case err != nil:
		return err
	case now.version < versionOf(resourceVersion), listed.uid != "" && now.uid != listed.uid:
		return informer.ErrBroken
	}
	r.listed.Store(&now) // the member's first heartbeat may be younger than the list
	return nil
}

// wait delays the list that follows a list without a watch: longer the more of these there were in succession, since
// the lists are for nothing then, or all that is seen of the member.
func (r *resumer) wait(ctx context.Context) {
	timer := time.NewTimer(min(retry.Duration<<r.unopened, unwatched))
	defer timer.Stop()
	if r.unopened < retry.Steps {
		r.unopened++
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
