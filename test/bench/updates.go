// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
)

// updateRate is how many slices are updated in a second.
const updateRate = 200

// updateWhat begins the name of the figure; the number of endpoints comes after it.
const updateWhat = "processor time of an update among "

// firstSlice is the slice that holds the endpoint that hostname names.
func (r *scaleRun) firstSlice(service int) *discoveryv1.EndpointSlice {
	return r.set.Slices[service*objects.SlicesOf(endpointsPerService)]
}

// updatesApart is updates on servers of its own.
func (r *scaleRun) updatesApart(ctx context.Context) (f figure.Figure, ours float64, err error) {
	all, stop, err := r.startServers(ctx, servers.AnyCore, r.plane.kubeconfig, servers.Ours, servers.Stock)
	if err != nil {
		return f, 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := r.awaitAll(ctx, all); err != nil {
		return f, 0, err
	}
	return r.updates(ctx, all)
}

// updates measures what updates of slices cost the servers. ours is the nanoseconds of our own.
func (r *scaleRun) updates(ctx context.Context, all []*servers.Server) (f figure.Figure, ours float64, err error) {
	f = figure.Figure{
		What: updateWhat + thousands(r.endpoints()) + " endpoints", Goal: "≤ ⅓ of stock",
		Why: "decoding is shared",
	}
	r.say("%s", f.What)
	// As many services as there are in the small clusterset: the same updates in both.
	costs, err := r.updateCosts(ctx, all, r.set.Slices[:r.smallServices*objects.SlicesOf(endpointsPerService)])
	if err != nil {
		return f, 0, err
	}
	ours = figure.Median(costs[servers.Ours])
	f.Cells = []string{figure.Time(ours), divided(costs[servers.Ours], costs[servers.Stock], figure.Time)}
	f.Verdict = figure.Judge(figure.Ratio(costs[servers.Ours], costs[servers.Stock]) <= 1.0/3)
	return f, ours, nil
}

// updateCosts is what each update costs each server in each round, in nanoseconds of processor time.
func (r *scaleRun) updateCosts(ctx context.Context, all []*servers.Server,
	slices []*discoveryv1.EndpointSlice,
) (map[servers.Kind][]float64, error) {
	costs := map[servers.Kind][]float64{}
	for range r.rounds {
		idle, err := usedBy(all, func() error { return pause(ctx, r.updateTime/4) })
		if err != nil {
			return nil, err
		}
		count := int(r.updateTime.Seconds() * updateRate)
		began, done := time.Now(), 0
		used, err := usedBy(all, func() (err error) {
			if done, err = r.plane.writer.Stream(ctx, r.set, slices, updateRate, count); err != nil {
				return err
			}
			return r.mark(ctx, all)
		})
		if err != nil {
			return nil, err
		}
		lasted := float64(time.Since(began)) / float64(r.updateTime/4)
		for i, server := range all {
			cost := float64(used[i]) - float64(idle[i])*lasted
			costs[server.Kind] = append(costs[server.Kind], cost/float64(done+1))
		}
	}
	return costs, nil
}

// hugeServices measures updates of services that have many endpoints.
func (r *scaleRun) hugeServices(ctx context.Context, all []*servers.Server) (figures []figure.Figure, err error) {
	for _, endpoints := range r.hugeEndpoints {
		f, err := r.hugeService(ctx, all, endpoints)
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// hugeService measures updates of a service that has so many endpoints.
func (r *scaleRun) hugeService(ctx context.Context, all []*servers.Server, endpoints int) (f figure.Figure, err error) {
	f = figure.Figure{
		What: fmt.Sprintf("the same, of a service of %s endpoints", thousands(endpoints)), Goal: "≤ 0.8 × stock",
		Why: "decoding is shared",
	}
	r.say("%s", f.What)
	first := len(r.set.Slices)
	r.set.Headless(fmt.Sprintf("huge-%d", endpoints), endpoints)
	if err := r.plane.writer.Create(ctx, r.set, len(r.set.Imports)-1, first); err != nil {
		return f, err
	}
	if err := r.mark(ctx, all); err != nil {
		return f, err
	}
	costs, err := r.updateCosts(ctx, all, r.set.Slices[first:])
	if err != nil {
		return f, err
	}
	f.Cells = []string{
		figure.Time(figure.Median(costs[servers.Ours])),
		divided(costs[servers.Ours], costs[servers.Stock], figure.Time),
	}
	f.Verdict = figure.Judge(figure.Ratio(costs[servers.Ours], costs[servers.Stock]) <= 0.8)
	return f, nil
}

// latencyUnderUpdates measures how long queries take while slices are updated.
func (r *scaleRun) latencyUnderUpdates(ctx context.Context, all []*servers.Server) (_ []figure.Figure, err error) {
	f := figure.Figure{What: fmt.Sprintf("query p99 under %d updates/s, at %s queries/s", updateRate,
		thousands(queryRate)), Goal: "≤ 1.25 × prebuilt"}
	if missing := wire.HaveDnsperf(); missing != nil {
		f.Cells, f.Verdict = []string{missing.Error()}, figure.NotMeasured
		return []figure.Figure{f}, nil
	}
	r.say("%s", f.What)
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "%s A\n", r.hostname(i%r.largeServices))
	}
	queries := filepath.Join(r.dir, "hosts.queries")
	if err := os.WriteFile(queries, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	floor, stopFloor, err := r.startServers(ctx, servers.AnyCore, all[0].Address+" "+queries, servers.Floor)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopFloor()) }()
	all = slices.Concat(all, floor)
	updating, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() {
		_, err := r.plane.writer.Stream(updating, r.set, r.set.Slices, updateRate, 1<<30)
		failed <- err
	}()
	// Many short turns, all of a server's together: what stalls the machine for a moment then meets all alike.
	latencies := map[servers.Kind][]time.Duration{}
	for round := range r.turns * r.rounds {
		for turn := range all {
			server := all[(turn+round)%len(all)]
			_, result, err := r.load(ctx, server, wire.Load{
				Queries: queries, Duration: time.Second, PerSecond: queryRate, Core: servers.AnyCore, Latencies: true,
			})
			if err != nil {
				return nil, err
			}
			latencies[server.Kind] = append(latencies[server.Kind], result.Latencies...)
		}
	}
	stop()
	if err := <-failed; err != nil {
		return nil, err
	}
	p99 := func(kind servers.Kind) float64 { return float64(figure.Quantile(latencies[kind], 0.99)) }
	ours, prebuilt := p99(servers.Ours), p99(servers.Floor)
	f.Cells = []string{figure.Time(ours), figure.Time(p99(servers.Stock)), figure.Time(prebuilt) + " (prebuilt)"}
	f.Verdict = figure.Judge(ours <= 1.25*prebuilt)
	f.Why = "prebuilt receives no updates"
	return []figure.Figure{f}, nil
}

// queryRate is how many queries are put in a second while their time is taken: a server is then busy to a small part.
const queryRate = 2000

// propagation measures the time from the API server's response to a write until the answer is another.
func (r *scaleRun) propagation(ctx context.Context, all []*servers.Server) ([]figure.Figure, error) {
	f := figure.Figure{What: "endpoint written → answer changed, p50 and p99"}
	r.say("%s", f.What)
	if err := r.mark(ctx, all); err != nil { // all that was under way has arrived
		return nil, err
	}
	p50, p99 := map[servers.Kind][]float64{}, map[servers.Kind][]float64{}
	for range r.rounds {
		times := map[servers.Kind][]time.Duration{}
		for i := range 2 * r.changes {
			server := all[i%2] // ours and stock, in turns
			late, err := r.change(ctx, server, i%r.smallServices)
			if err != nil {
				return nil, err
			}
			times[server.Kind] = append(times[server.Kind], late)
		}
		for kind, late := range times {
			p50[kind] = append(p50[kind], float64(figure.Quantile(late, 0.5)))
			p99[kind] = append(p99[kind], float64(figure.Quantile(late, 0.99)))
		}
	}
	for _, kind := range []servers.Kind{servers.Ours, servers.Stock} {
		f.Cells = append(f.Cells, figure.Time(figure.Median(p50[kind]))+", "+figure.Time(figure.Median(p99[kind])))
	}
	return []figure.Figure{f}, nil
}

// pollInterval is how often a server is asked whether its answer has changed.
const pollInterval = 100 * time.Microsecond

// change moves an endpoint and returns how long after the API server's response the server answers with it.
func (r *scaleRun) change(ctx context.Context, server *servers.Server, service int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := wire.Dial(ctx, server.Address)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	address := r.set.NextAddress().String()
	type seen struct {
		at  time.Time
		err error
	}
	answered := make(chan seen, 1)
	go func() {
		at, err := client.Await(ctx, r.hostname(service), dns.TypeA, pollInterval, wire.HasAddress(address), server.Err)
		answered <- seen{at, err}
	}()
	written, err := r.plane.writer.Move(ctx, r.firstSlice(service), address)
	if err != nil {
		cancel()
		<-answered
		return 0, err
	}
	result := <-answered
	// On a busy machine, the watch is ahead of the response. A nanosecond shows that it was measured.
	return max(1, result.at.Sub(written)), result.err
}
