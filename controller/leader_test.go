// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var leaderLease = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// memoryLock is the lock of the replica "first".
type memoryLock struct {
	mu            sync.Mutex
	record        *resourcelock.LeaderElectionRecord
	version, read int
	// failing makes renewals fail; all other requests succeed.
	failing bool
}

func (l *memoryLock) Identity() string   { return "first" }
func (l *memoryLock) Describe() string   { return "memory" }
func (l *memoryLock) RecordEvent(string) {}

func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(leaderLease, LeaderLease)
	}
	l.read = l.version
	record := *l.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *memoryLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = &record
	return nil
}

func (l *memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing && record.HolderIdentity != "" {
		return errors.New("no answer")
	}
	if l.read != l.version {
		return apierrors.NewConflict(leaderLease, LeaderLease, errors.New("version "+strconv.Itoa(l.version)))
	}
	l.version++
	l.read = l.version
	l.record = &record
	return nil
}

// set changes the lock as another client does.
func (l *memoryLock) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	change()
}

// held returns the holder of the lock, and the number of updates.
func (l *memoryLock) held() (by string, renewals int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.HolderIdentity, l.version
}

// renewed waits for three renewals.
func (l *memoryLock) renewed() error {
	_, begin := l.held()
	return wait.PollUntilContextTimeout(context.Background(), time.Millisecond, 2*time.Second, false, func(context.Context) (bool, error) {
		_, now := l.held()
		return now >= begin+3, nil
	})
}

// quick is an election with short durations, so that a failed renewal soon ends the work.
func quick(lock *memoryLock) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 20 * time.Millisecond,
	}
}

// TestLockIsGivenUpAfterTheWork: no other replica may begin before the work of this one has stopped, however its
// leadership ends. The lock is renewed while the work stops.
func TestLockIsGivenUpAfterTheWork(t *testing.T) {
	failure := errors.New("the work failed")
	for name, test := range map[string]struct {
		end     func(lock *memoryLock, stop func()) error
		want    error
		holding string // while the work stops
		after   string
	}{
		"asked to stop":  {func(l *memoryLock, stop func()) error { stop(); return l.renewed() }, nil, "first", ""},
		"cannot renew":   {func(l *memoryLock, _ func()) error { l.set(func() { l.failing = true }); return nil }, ErrLost, "first", ""},
		"the work fails": {func(*memoryLock, func()) error { return failure }, failure, "first", ""},
		"somebody else's lock": {
			func(l *memoryLock, _ func()) error { l.set(func() { l.record = thief() }); return nil }, ErrLost, "thief", "thief",
		},
		"somebody takes it while the work stops": {
			func(l *memoryLock, stop func()) error { stop(); l.set(func() { l.record = thief() }); return nil }, nil, "thief", "thief",
		},
	} {
		t.Run(name, func(t *testing.T) {
			lock := &memoryLock{}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var holding string
			err := elect(ctx, quick(lock), func(ctx context.Context) error {
				err := test.end(lock, stop)
				if err == nil {
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Second):
						t.Error("the work goes on")
					}
					err = fmt.Errorf("what was asked for: %w", ctx.Err())
				} else if !errors.Is(err, failure) {
					t.Errorf("not renewed while the work stops: %v", err)
				}
				holding, _ = lock.held()
				return err
			})
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if after, _ := lock.held(); holding != test.holding || after != test.after {
				t.Errorf("held by %q while the work stops, by %q afterwards", holding, after)
			}
		})
	}
}

func thief() *resourcelock.LeaderElectionRecord {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: "thief", LeaseDurationSeconds: 60}
}
