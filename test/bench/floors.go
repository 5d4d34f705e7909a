// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
)

// endControllers ends the controllers, so that plain clients can do what they did.
func (r *memberRun) endControllers() error {
	err := errors.Join(r.eastController.End(), r.westController.End())
	r.eastController, r.westController = nil, nil
	return err
}

// turns are how often the controllers and the plain clients follow changes, one after the other.
const turns = 3

// inTurns follows changes that the controllers carry, and as many that plain clients carry while the controllers are
// halted.
func (r *memberRun) inTurns(ctx context.Context) (ours, floor []time.Duration, err error) {
	const interval = 50 * time.Millisecond
	for range turns {
		took, err := r.follow(ctx, interval, r.followed/turns)
		if err != nil {
			return nil, nil, err
		}
		ours = append(ours, took...)
		if err := r.signal(syscall.SIGSTOP); err != nil {
			return nil, nil, err
		}
		took, err = r.relayed(ctx, interval, r.followed/turns)
		if err := errors.Join(err, r.signal(syscall.SIGCONT)); err != nil {
			return nil, nil, err
		}
		floor = append(floor, took...)
		if err := pause(ctx, time.Second); err != nil { // the controllers catch up
			return nil, nil, err
		}
	}
	return ours, floor, r.endControllers()
}

// signal sends a signal to the controllers. Halted for less than 30 s, they are not stale.
func (r *memberRun) signal(signal syscall.Signal) error {
	var errs []error
	for _, controller := range r.controllers() {
		errs = append(errs, syscall.Kill(controller.PID(), signal))
	}
	return errors.Join(errs...)
}

// relayed follows changes that two plain clients carry: from the slice of the Service to the published one, and from that
// to its copy. They know which slice is which.
func (r *memberRun) relayed(ctx context.Context, interval time.Duration, count int) (took []time.Duration, err error) {
	r.say("floor of changes")
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	defer func() { err = errors.Join(err, group.Wait()) }()
	defer cancel()
	publish, err := r.east.writer.Relay(ctx, namespace, discoveryv1.LabelServiceName, r.east.writer)
	if err != nil {
		return nil, err
	}
	group.Go(publish)
	read, err := r.east.writer.Relay(ctx, namespace, mcsv1beta1.LabelServiceName, r.west.writer)
	if err != nil {
		return nil, err
	}
	group.Go(read)
	return r.follow(ctx, interval, count)
}

// copied is the least time that it takes to write, once more and in both clusters, what the users and the controllers wrote,
// with the best of several numbers of services at a time.
func (r *memberRun) copied(ctx context.Context) (least time.Duration, err error) {
	planes := []*plane{r.east, r.west}
	var made [2][]*objects.Made
	for i, p := range planes {
		if made[i], err = p.writer.Made(ctx); err != nil {
			return 0, err
		}
	}
	for _, atOnce := range []int{4, 8, 16, 32} {
		prefix := fmt.Sprintf("floor-%d-", atOnce)
		for _, p := range planes {
			if err := p.writer.Namespace(ctx, prefix+namespace); err != nil {
				return 0, err
			}
		}
		began := time.Now()
		var writes errgroup.Group
		for i, p := range planes {
			writes.Go(func() error { return p.writer.Copy(ctx, made[i], prefix, atOnce) })
		}
		err := writes.Wait()
		took := time.Since(began)
		if r.say("floor of exports: %d at a time take %s", atOnce, figure.Time(float64(took))); err != nil {
			return 0, err
		}
		if least == 0 || took < least {
			least = took
		}
	}
	return least, nil
}

// quantiles are the median and the 99th percentile in nanoseconds.
func quantiles(took []time.Duration) [2]float64 {
	return [2]float64{float64(figure.Quantile(took, 0.5)), float64(figure.Quantile(took, 0.99))}
}

// beside is a figure of two values next to those of the floor.
func beside(what string, ours, floor [2]float64, show func(float64) string) figure.Figure {
	return figure.Figure{What: what, Cells: []string{
		show(ours[0]) + ", " + show(ours[1]), show(floor[0]) + ", " + show(floor[1]),
		fmt.Sprintf("%.2f, %.2f", ours[0]/floor[0], ours[1]/floor[1]),
	}}
}
