// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// LeaderLease is the name of the Lease by which replicas elect their leader.
const LeaderLease = "clusterset-controller"

// ErrLost is the error of Run when another replica may lead: the process must restart.
var ErrLost = errors.New("the leader Lease was lost: the process restarts, and waits to lead again")

// elect waits until this replica has the Lease, calls lead, and releases the Lease once lead has returned, so that no two
// replicas work at the same time. The context of lead ends with ctx, or when the Lease is lost. elect returns nil if ctx
// ended, ErrLost if the Lease was lost, and otherwise the error of lead. Call it once per process.
func (c *controller) elect(ctx context.Context, lead func(context.Context) error) error {
	return elect(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.options.Namespace, Name: LeaderLease},
			Client:     c.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.options.Identity},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}, lead)
}

// elect is controller.elect with the lock and the durations as parameters.
func elect(ctx context.Context, config leaderelection.LeaderElectionConfig, lead func(context.Context) error) error {
	// The Lease is renewed after ctx has ended, for as long as the work takes to stop.
	election, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	started, ended := make(chan context.Context, 1), make(chan struct{})
	// With ReleaseOnCancel, the elector would release the Lease after a failed renewal, before the work stops.
	config.Name, config.ReleaseOnCancel = LeaderLease, false
	config.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(leading context.Context) { started <- leading },
		OnStoppedLeading: func() {},
	}
	elector, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	go func() {
		defer close(ended)
		elector.Run(election)
	}()
	var led error
	select {
	case <-ctx.Done():
	case leading := <-started:
		work, stop := context.WithCancel(leading)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		if led = lead(work); leading.Err() != nil { //nolint:contextcheck // the work ends with the Lease, too
			led = ErrLost
		}
	}
	resign()
	<-ended
	if elector.IsLeader() {
		if err := release(ctx, config.Lock, config.RenewDeadline); err != nil {
			klog.FromContext(ctx).Info("Cannot give up the leader Lease: another replica leads once it runs out",
				"lease", config.Lock.Describe(), "err", err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return led
}

// release releases the Lease if this replica holds it, so that another replica need not wait until it runs out.
func release(ctx context.Context, lock resourcelock.Interface, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err != nil || record.HolderIdentity != lock.Identity() {
		return err
	}
	return lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1,
		RenewTime: metav1.Now(), AcquireTime: metav1.Now(),
	})
}
