// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
)

// stopControllers ends the controllers, so that plain clients can do what they did.
func (r *memberRun) stopControllers() error {
	err := errors.Join(r.eastController.End(), r.westController.End())
	r.eastController, r.westController = nil, nil
	return err
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

// copied is how long it takes to write, once more and in both clusters, what the users and the controllers wrote.
func (r *memberRun) copied(ctx context.Context) (time.Duration, error) {
	r.say("floor of exports")
	const prefix = "floor-"
	var writes errgroup.Group
	begin := make(chan struct{})
	for _, p := range []*plane{r.east, r.west} {
		if err := p.writer.Namespace(ctx, prefix+namespace); err != nil {
			return 0, err
		}
		made, err := p.writer.Made(ctx)
		if err != nil {
			return 0, err
		}
		writes.Go(func() error {
			<-begin
			return p.writer.Copy(ctx, made, prefix)
		})
	}
	began := time.Now()
	close(begin)
	err := writes.Wait()
	return time.Since(began), err
}

// beside is a figure next to its floor. What it may exceed the floor by, or how many times it, is its goal.
func beside(what string, ours, floor time.Duration, times float64, more time.Duration) figure.Figure {
	ratio := float64(ours) / float64(floor)
	f := figure.Figure{
		What:  what,
		Cells: []string{figure.Time(float64(ours)), figure.Time(float64(floor)), fmt.Sprintf("%.2f", ratio)},
	}
	if times > 0 {
		f.Goal, f.Verdict = fmt.Sprintf("ratio ≤ %v", times), figure.Judge(ratio <= times)
	} else {
		f.Goal, f.Verdict = fmt.Sprintf("≤ floor + %s", more), figure.Judge(ours <= floor+more)
	}
	return f
}
