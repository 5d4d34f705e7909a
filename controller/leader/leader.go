// SPDX-License-Identifier: Apache-2.0

// Package leader elects one of several replicas of the controller, and lets it work while it holds the Lease.
package leader

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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

// Lease is the name of the Lease by which replicas elect their leader.
const Lease = "clusterset-controller"

// A hintingLock logs once what to do if the rights to elect a leader are missing. The elector itself only repeats the
// error of the API server.
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
			klog.FromContext(ctx).Error(err, "No leader can be elected, so nothing is done: apply deploy/rbac.yaml, "+
				"or name the namespace of the controller with --namespace; trying again",
				"lease", klog.KRef(l.namespace, Lease))
		})
	}
	return err
}

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

// Run calls lead whenever this replica acquires the Lease, until the context ends or lead fails. The context of lead
// ends when the Lease is lost. Run releases the Lease only after lead has returned, so that no two replicas work at the
// same time.
func Run(ctx context.Context, config Config, lead func(context.Context) error) error {
	identity := config.Identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("identity for leader election: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	lock := &hintingLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: config.Namespace, Name: Lease},
			Client:     config.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		namespace: config.Namespace,
	}
	for {
		err := leadWhileHeld(ctx, lock, config, lead)
		if !errors.Is(err, errLost) {
			return err
		}
		// A restarted process would have to wait until the Lease of this process expires. This process acquires it
		// again at once if no other replica did.
		klog.FromContext(ctx).Error(err, "Stopped the work until this replica leads again",
			"lease", klog.KRef(config.Namespace, Lease))
	}
}

// errLost is returned when another replica may lead.
var errLost = errors.New("the leader Lease was lost")

// leadWhileHeld calls lead once the lock is acquired, and returns after lead has returned and the lock is released. It
// returns errLost if the lock was lost.
func leadWhileHeld(
	ctx context.Context, lock resourcelock.Interface, config Config, lead func(context.Context) error,
) error {
	// The election outlives ctx for as long as the work takes to stop.
	election, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	var led error
	var work sync.Once
	// ended waits for the work, or ensures that it never begins.
	ended := func() { work.Do(func() {}) }
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: config.LeaseDuration,
		RenewDeadline: config.RenewDeadline,
		RetryPeriod:   config.RetryPeriod,
		// When a renewal fails, the elector would release the lock before it stops the work.
		ReleaseOnCancel: false,
		Name:            Lease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				work.Do(func() {
					leading, stop := context.WithCancel(leading)
					defer stop()
					defer context.AfterFunc(ctx, stop)()
					if err := lead(leading); leading.Err() == nil {
						led = err // otherwise it failed because the Lease was lost
					}
				})
				resign()
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      config.Elected,
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
		if err := release(ctx, lock, config.RenewDeadline); err != nil {
			klog.FromContext(ctx).Info("Cannot give up the leader Lease: another replica leads once it runs out",
				"lease", lock.Describe(), "err", err)
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

// release releases the lock if this replica holds it, so that another replica need not wait until it expires.
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
