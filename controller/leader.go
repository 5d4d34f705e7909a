// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// LeaderLease is the name of the Lease by which replicas elect their leader.
const LeaderLease = "clusterset-controller"

// A hintingLock says once what to do where the rights to elect a leader are
// missing. The elector itself only repeats what the API server says.
type hintingLock struct {
	resourcelock.Interface
	namespace string
	told      sync.Once
}

// Get implements resourcelock.Interface.
func (l *hintingLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	return record, raw, l.hint(ctx, err)
}

// Create implements resourcelock.Interface.
func (l *hintingLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.hint(ctx, l.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (l *hintingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.hint(ctx, l.Interface.Update(ctx, record))
}

func (l *hintingLock) hint(ctx context.Context, err error) error {
	if apierrors.IsForbidden(err) {
		l.told.Do(func() {
			klog.FromContext(ctx).Error(err, "No leader can be elected, so nothing is done: apply deploy/rbac.yaml, or name the namespace of the controller with --namespace; trying again",
				"lease", klog.KRef(l.namespace, LeaderLease))
		})
	}
	return err
}

// elect leads whenever this replica holds the Lease, until the context ends,
// and gives it up only once the work has stopped, so that no two replicas ever
// work at once. It returns an error where the work fails.
func (c *Controller) elect(ctx context.Context, cluster string) error {
	identity := c.options.Identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("identity for leader election: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	lock := &hintingLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.options.Namespace, Name: LeaderLease},
			Client:     c.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		namespace: c.options.Namespace,
	}
	for {
		c.readiness.set("") // a replica that waits for its turn is ready
		err := leadWhileHeld(ctx, lock, c.options, func(ctx context.Context) error { return c.lead(ctx, cluster) })
		if !errors.Is(err, errLost) {
			return err
		}
		// The work has stopped. A new process would have to wait until the Lease of
		// this one runs out; this one has it back at once where nobody else took it.
		klog.FromContext(ctx).Error(err, "Stopped the work until this replica leads again", "lease", klog.KRef(c.options.Namespace, LeaderLease))
	}
}

// errLost tells that another replica may lead.
var errLost = errors.New("the leader Lease was lost")

// leadWhileHeld leads while the lock is held and ctx lasts, and returns once
// the work has stopped and the lock is given up. The error is errLost where the
// lock was lost.
func leadWhileHeld(ctx context.Context, lock resourcelock.Interface, options Options, lead func(context.Context) error) error {
	// The election outlives ctx for as long as the work takes to stop.
	election, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	var led error
	var work sync.Once
	// ended waits for the work, or sees to it that it never begins.
	ended := func() { work.Do(func() {}) }
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: options.LeaseDuration,
		RenewDeadline: options.RenewDeadline,
		RetryPeriod:   options.RetryPeriod,
		// The elector would give the lock up before it tells that the work has
		// to stop where it could not renew it.
		ReleaseOnCancel: false,
		Name:            LeaderLease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				work.Do(func() {
					leading, stop := context.WithCancel(leading)
					defer stop()
					defer context.AfterFunc(ctx, stop)()
					if err := lead(leading); leading.Err() == nil {
						led = err // what fails because the Lease was lost says nothing
					}
				})
				resign()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		ended()
		resign()
	})()
	elector.Run(election)
	ended()
	if elector.IsLeader() {
		if err := release(ctx, lock, options.RenewDeadline); err != nil {
			klog.FromContext(ctx).Info("Cannot give up the leader Lease: another replica leads once it runs out", "lease", lock.Describe(), "err", err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case led != nil:
		return led
	default:
		return errLost
	}
}

// release gives up the lock where it is held, so that another replica need not
// wait until it runs out.
func release(ctx context.Context, lock resourcelock.Interface, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // a renewal may be under way
		record, _, err := lock.Get(ctx)
		if err != nil {
			return err
		}
		if record.HolderIdentity != lock.Identity() {
			return nil
		}
		now := metav1.Now()
		return lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions:    record.LeaderTransitions,
			LeaseDurationSeconds: 1,
			RenewTime:            now,
			AcquireTime:          now,
		})
	})
}
