// SPDX-License-Identifier: Apache-2.0

// Package leader elects one of several replicas of the controller, and lets it work while it holds the Lease.
package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// Lease is the name of the Lease by which replicas elect their leader.
const Lease = "clusterset-controller"

// Config is what an election needs.
type Config struct {
	Client kubernetes.Interface
	// Namespace is that of the Lease.
	Namespace string
	// Identity distinguishes replicas. Empty means the host name and a random suffix.
	Identity string
	// LeaseDuration, RenewDeadline and RetryPeriod are those of client-go's leader election.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Elected is called with the identity of each new leader, this replica or another; nil is none.
	Elected func(identity string)
}

// ErrLost is the error of Run when another replica may lead: the process is to restart.
var ErrLost = errors.New("the leader Lease was lost: the process restarts, and waits to lead again")

// Run waits until this replica has the Lease, calls lead, and releases the Lease once lead has returned, so that no two
// replicas work at the same time. The context of lead ends with ctx, or when the Lease is lost. Run returns nil if ctx
// ended, ErrLost if the Lease was lost, and otherwise what lead returned. It is called once in a process.
func Run(ctx context.Context, config Config, lead func(context.Context) error) error {
	identity := config.Identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("identity for leader election: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	return run(ctx, &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: config.Namespace, Name: Lease},
		Client:     config.Client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, config, lead)
}

func run(ctx context.Context, lock resourcelock.Interface, config Config, lead func(context.Context) error) error {
	// The Lease is renewed after ctx has ended, for as long as the work takes to stop.
	election, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	elected, ended := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: Lease,
		LeaseDuration: config.LeaseDuration, RenewDeadline: config.RenewDeadline, RetryPeriod: config.RetryPeriod,
		// When a renewal fails, the elector would release the Lease before the work stops.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { elected <- leading },
			OnStoppedLeading: func() {},
			OnNewLeader:      config.Elected,
		},
	})
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
	case leading := <-elected:
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
		if err := release(ctx, lock, config.RenewDeadline); err != nil {
			klog.FromContext(ctx).Info("Cannot give up the leader Lease: another replica leads once it runs out",
				"lease", lock.Describe(), "err", err)
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
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { // a renewal may be under way
		record, _, err := lock.Get(ctx)
		if err != nil || record.HolderIdentity != lock.Identity() {
			return err
		}
		return lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1,
			RenewTime: metav1.Now(), AcquireTime: metav1.Now(),
		})
	})
}
