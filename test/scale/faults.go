// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/scale/fleet"
)

// servers measures a restart of the API servers of all members at once.
func servers(ctx context.Context, b *bed) error {
	var back time.Time
	var answered time.Duration
	u, err := b.during(ctx, func() error {
		if err := b.fleet.Silence(fleet.Down, b.fleet.Members...); err != nil {
			return err
		}
		if err := b.fleet.Return(ctx, fleet.Down, b.fleet.Members...); err != nil {
			return err
		}
		back = time.Now()
		changes, err := b.fleet.ChangeEach(ctx)
		if err != nil {
			return err
		}
		if err := b.allAnswered(ctx, changes); err != nil {
			return err
		}
		answered = time.Since(back)
		return b.await(ctx, "no change waits", samples.idle)
	})
	if err != nil {
		return err
	}
	b.add(figure.Figure{
		What: "API servers of all members restart → a change in each is answered", Goal: "no list of slices",
		Cells: cell("%s; %s lists of slices, %s watches of slices; processor time of the controller %s",
			figure.Time(float64(answered)), thousands(u.requests.SliceLists), thousands(u.requests.SliceWatches),
			figure.Time(float64(u.controller))),
		Verdict: figure.Judge(u.requests.SliceLists == 0),
	})
	return nil
}

// allFresh waits until all members are heard.
func (b *bed) allFresh(ctx context.Context) error {
	return b.await(ctx, "all members are fresh", func(s samples) bool {
		return s.fresh() == b.shape.Members && s.synced() == b.shape.Members && s.connected() == b.shape.Members &&
			s.idle()
	})
}

// silence measures some members that fall silent and return.
func silence(ctx context.Context, b *bed) error {
	if err := b.allFresh(ctx); err != nil {
		return err
	}
	down, hanging := b.silentOnes()
	fresh := 0
	during, err := b.during(ctx, func() error {
		if err := errors.Join(b.fleet.Silence(fleet.Down, down...), b.fleet.Silence(fleet.Hanging, hanging...),
			b.pause(ctx, b.silence)); err != nil {
			return err
		}
		metrics, err := b.controllerMetrics(ctx)
		fresh = metrics.fresh()
		return err
	})
	if err != nil {
		return err
	}
	after, err := b.during(ctx, func() error {
		return errors.Join(b.fleet.Return(ctx, fleet.Down, down...), b.fleet.Return(ctx, fleet.Hanging, hanging...),
			b.allFresh(ctx))
	})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d members silent for %s", b.silent, b.silence)
	b.add(
		figure.Figure{
			What: what + ", half of them refusing connections and half hanging",
			Cells: cell("%d demoted; %s writes; processor time of the controller %s", b.shape.Members-fresh,
				thousands(int(during.writes)), figure.Time(float64(during.controller))),
		},
		figure.Figure{
			What: what + ", and their return → all fresh",
			Cells: cell("%s; %s lists of slices; %s writes; processor time of the controller %s",
				figure.Time(float64(after.took)), thousands(after.requests.SliceLists), thousands(int(after.writes)),
				figure.Time(float64(after.controller))),
		})
	return nil
}

// isolation measures all members that fall silent and return together, as when this cluster loses its network.
func isolation(ctx context.Context, b *bed) error {
	if err := b.allFresh(ctx); err != nil {
		return err
	}
	during, err := b.during(ctx, func() error {
		return errors.Join(b.fleet.Silence(fleet.Down, b.fleet.Members...), b.pause(ctx, b.silence))
	})
	if err != nil {
		return err
	}
	after, err := b.during(ctx, func() error {
		return errors.Join(b.fleet.Return(ctx, fleet.Down, b.fleet.Members...), b.allFresh(ctx))
	})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("all members silent for %s", b.silence)
	b.add(
		figure.Figure{
			What: what,
			Cells: cell("%s writes, %s of them Leases; processor time of the controller %s",
				thousands(int(during.writes)), thousands(int(during.leaseWrites)),
				figure.Time(float64(during.controller))),
		},
		figure.Figure{
			What: what + ", and their return → all fresh",
			Cells: cell("%s; %s lists of slices; %s writes; processor time of the controller %s",
				figure.Time(float64(after.took)), thousands(after.requests.SliceLists), thousands(int(after.writes)),
				figure.Time(float64(after.controller))),
		})
	return nil
}

// absence measures a restart of the controller while some members are silent, and their return.
func absence(ctx context.Context, b *bed) error {
	down, hanging := b.silentOnes()
	// The answers for the members that are silent must stay.
	kept, err := b.fleet.ChangeEach(ctx)
	if err != nil {
		return err
	}
	if err := b.allAnswered(ctx, kept); err != nil {
		return err
	}
	if err := b.kill(); err != nil {
		return err
	}
	if err := errors.Join(b.fleet.Silence(fleet.Down, down...),
		b.fleet.Silence(fleet.Hanging, hanging...)); err != nil {
		return err
	}
	start, err := b.during(ctx, func() error {
		if err := b.run(); err != nil {
			return err
		}
		return b.await(ctx, "the other members are synced", func(s samples) bool {
			return s.synced() == b.shape.Members-b.silent && s.idle()
		})
	})
	if err != nil {
		return err
	}
	if err := b.allAnswered(ctx, kept); err != nil {
		return err
	}
	after, err := b.during(ctx, func() error {
		return errors.Join(b.fleet.Return(ctx, fleet.Down, down...), b.fleet.Return(ctx, fleet.Hanging, hanging...),
			b.allFresh(ctx))
	})
	if err != nil {
		return err
	}
	b.add(
		figure.Figure{
			What: fmt.Sprintf("restart while %d members are silent → complete, their answers kept", b.silent),
			Cells: cell("%s; %s writes; processor time of the controller %s", figure.Time(float64(start.took)),
				thousands(int(start.writes)), figure.Time(float64(start.controller))),
		},
		figure.Figure{
			What: "their return after the restart → all fresh",
			Cells: cell("%s; %s lists of slices; %s writes", figure.Time(float64(after.took)),
				thousands(after.requests.SliceLists), thousands(int(after.writes))),
		})
	return nil
}
