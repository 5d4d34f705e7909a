// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// failingLock is a lock of which each request ends with err.
type failingLock struct {
	resourcelock.Interface
	err error
}

func (l *failingLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return nil, nil, l.err
}

func (l *failingLock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	return l.err
}

func (l *failingLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	return l.err
}

// TestMissingRightsToElect: what to do is said once, and for no other failure.
func TestMissingRightsToElect(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{apierrors.NewNotFound(leases, Lease), 0},
		{apierrors.NewForbidden(leases, Lease, errors.New("no")), 1},
	} {
		hints := 0
		logger := funcr.New(func(_, line string) {
			if strings.Contains(line, "deploy/rbac.yaml") && strings.Contains(line, "--namespace") &&
				strings.Contains(line, "elsewhere") {
				hints++
			}
		}, funcr.Options{})
		ctx := klog.NewContext(t.Context(), logger)
		lock := &hintingLock{Interface: &failingLock{err: test.err}, namespace: "elsewhere"}
		for range 3 {
			_, _, got := lock.Get(ctx)
			for _, err := range []error{
				got, lock.Create(ctx, resourcelock.LeaderElectionRecord{}),
				lock.Update(ctx, resourcelock.LeaderElectionRecord{}),
			} {
				if !errors.Is(err, test.err) {
					t.Errorf("got %v, want %v", err, test.err)
				}
			}
		}
		if hints != test.want {
			t.Errorf("%v: %d hints, want %d", test.err, hints, test.want)
		}
	}
}
