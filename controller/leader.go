// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
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

// elect leads while this replica holds the Lease, and gives it up only once
// the work has stopped, so that no two replicas ever work at once.
func (c *Controller) elect(ctx context.Context, cluster string) error {
	identity := c.options.Identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("identity for leader election: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	// The election outlives ctx for as long as the work takes to stop.
	election, resign := context.WithCancel(context.WithoutCancel(ctx))
	defer resign()
	var led error
	started := make(chan struct{})
	stopped := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &hintingLock{
			Interface: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: c.options.Namespace, Name: LeaderLease},
				Client:     c.client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			},
			namespace: c.options.Namespace,
		},
		LeaseDuration:   c.options.LeaseDuration,
		RenewDeadline:   c.options.RenewDeadline,
		RetryPeriod:     c.options.RetryPeriod,
		ReleaseOnCancel: true,
		Name:            LeaderLease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer close(stopped)
				close(started)
				work, stop := context.WithCancel(leading)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				led = c.lead(work, cluster)
				resign()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	c.readiness.set("") // a replica that waits for its turn is ready
	defer context.AfterFunc(ctx, func() {
		select {
		case <-started:
		default:
			resign() // nothing to stop
		}
	})()
	elector.Run(election)
	select {
	case <-started:
		<-stopped
	default:
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case led != nil:
		return led
	default:
		return errors.New("the leader Lease was lost: another replica takes over")
	}
}
