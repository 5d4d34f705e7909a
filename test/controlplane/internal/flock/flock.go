// SPDX-License-Identifier: Apache-2.0

// Package flock locks files between processes (flock(2)). The kernel gives a lock back where its holder dies.
package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld is why a lock is not taken that somebody else holds.
var ErrHeld = errors.New("somebody else holds the lock")

// interval is the time between two tries to take a lock that somebody else holds.
const interval = 100 * time.Millisecond

// Wait takes the lock of a file once nobody else holds it.
func Wait(ctx context.Context, name string) (unlock func(), err error) {
	for {
		unlock, err := Try(name)
		if !errors.Is(err, ErrHeld) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(interval):
		}
	}
}

// Try takes the lock of a file, which it makes where it is missing, or fails with ErrHeld. The lock belongs to the
// file, not to its name: it stays where the file is renamed. Two locks in one process exclude each other, too.
func Try(name string) (unlock func(), err error) {
	return try(name, os.O_CREATE)
}

// TryExisting is Try for a file that must be there.
func TryExisting(name string) (unlock func(), err error) {
	return try(name, 0)
}

func try(name string, flags int) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_RDWR|flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open a lock: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { file.Close() }, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", name, ErrHeld)
		default:
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
	}
}
