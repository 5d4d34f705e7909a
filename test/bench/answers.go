// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
)

// The interval between two questions for a change grows with the time that it has taken, so that a slow answer costs
// few questions and is dated to a twentieth of its time.
const (
	askAtLeast = time.Millisecond
	askPart    = 20
)

// answered returns when CoreDNS answers with a change.
func (b *bed) answered(ctx context.Context, client *wire.Client, change fleet.Change) error {
	return client.Await(ctx, change.Host,
		func() time.Duration { return max(askAtLeast, time.Since(change.At)/askPart) },
		func(addresses []netip.Addr) bool { return slices.ContainsFunc(addresses, change.Answers) }, b.broken)
}

// follower times changes until they are answered, many at once.
type follower struct {
	bed   *bed
	group sync.WaitGroup
	// places bounds the number of changes that are followed at once.
	places chan struct{}

	mu   sync.Mutex
	took []time.Duration
	// skipped is the number of changes that found no place, and lost that of those that were not answered in time.
	skipped, lost int
	err           error
}

// followedAtOnce bounds the questions that are asked, which use processor time themselves.
const followedAtOnce = 500

// follow begins to follow a change.
func (f *follower) follow(ctx context.Context, change fleet.Change) {
	select {
	case f.places <- struct{}{}:
	default:
		f.mu.Lock()
		f.skipped++
		f.mu.Unlock()
		return
	}
	f.group.Go(func() {
		defer func() { <-f.places }()
		took, err := f.time(ctx, change)
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			f.lost++
		case err != nil:
			f.err = err
		default:
			f.took = append(f.took, took)
		}
	})
}

func (f *follower) time(ctx context.Context, change fleet.Change) (time.Duration, error) {
	client, err := wire.Dial(ctx, f.bed.local().dns.Address)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	err = f.bed.answered(ctx, client, change)
	return time.Since(change.At), err
}

// stream makes so many changes in a second for some time and follows some of them. It returns the number of changes.
func (b *bed) stream(ctx context.Context, followed *follower, rate int, lasts time.Duration) (count int, err error) {
	const perSecond = 20 // changes that are followed
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	began, credit := time.Now(), 0
	for time.Since(began) < lasts {
		select {
		case <-ctx.Done():
			return count, ctx.Err()
		case <-ticker.C:
		}
		// Ticks that were dropped are made up for.
		for due := int(time.Since(began).Seconds() * float64(rate)); count < due; count++ {
			change, err := b.fleet.Change(ctx)
			if err != nil {
				return count, err
			}
			if credit += perSecond; credit >= rate && change.Host != "" {
				credit -= rate
				followed.follow(ctx, change)
			}
		}
	}
	return count, nil
}
