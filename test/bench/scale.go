// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
)

const scaleText = `
Servers that watch a real API server with headless services of 50 endpoints in five slices each, half of them with
hostnames. The live heap is what is left of a server's heap after garbage collections, all of it divided by the number of
endpoints; beside it stands what it is more than *idle*, the same program without a plugin that watches. The start is from
the start of the process to the first answer for the service that was written last. An update moves one endpoint of a
slice, which is what a watch sees when a pod is replaced; its processor time is that of both servers over the same updates,
at the same time, less what they use when nothing happens. A server that watches the slices by client-go and drops what it gets
used 94 to 99 µs per update beside 163 to 166 of ours in November 2026.`

// scaleRun is what the measurements of a large clusterset share.
type scaleRun struct {
	*bench
	plane *plane
	set   *objects.Set
	marks int // endpoints moved to see an update arrive
}

// endpointsPerService is how many endpoints the services have.
const endpointsPerService = 50

// grow writes services until there are so many.
func (r *scaleRun) grow(ctx context.Context, services int) error {
	imports, slices := len(r.set.Imports), len(r.set.Slices)
	for i := imports; i < services; i++ {
		r.set.Headless(fmt.Sprintf("db-%d", i), endpointsPerService)
	}
	r.say("writing %s imports and %s slices", thousands(len(r.set.Imports)-imports), thousands(len(r.set.Slices)-slices))
	return r.plane.writer.Create(ctx, r.set, imports, slices)
}

// endpoints is how many there are.
func (r *scaleRun) endpoints() int {
	count := 0
	for _, slice := range r.set.Slices {
		count += len(slice.Endpoints)
	}
	return count
}

// scale measures large clustersets.
func scale(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Large clustersets", Text: scaleText}
	p, err := startPlane(ctx, "scale")
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	r := &scaleRun{bench: b, plane: p, set: &objects.Set{Namespace: "scale"}}
	add := func(figures []figure.Figure, err error) error {
		table.Figures = append(table.Figures, figures...)
		return err
	}
	if err := r.grow(ctx, b.smallServices); err != nil {
		return table, err
	}
	var small, large figure.Figure
	small, smallCost, err := r.updatesApart(ctx)
	if err != nil {
		return table, err
	}
	if err := r.grow(ctx, b.largeServices); err != nil {
		return table, err
	}
	if err := add(r.starts(ctx)); err != nil {
		return table, err
	}
	all, stop, err := b.startServers(ctx, servers.AnyCore, p.kubeconfig, servers.Ours, servers.Stock)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := r.awaitAll(ctx, all); err != nil {
		return table, err
	}
	large, largeCost, err := r.updates(ctx, all)
	if err != nil {
		return table, err
	}
	growth := largeCost / smallCost
	table.Figures = append(table.Figures, small, large, figure.Figure{
		What: fmt.Sprintf("the same of ours, among %s endpoints against %s", large.What[len(updateWhat):], small.What[len(updateWhat):]),
		Goal: "≤ 1.1 ×", Measured: fmt.Sprintf("%.2f × (%s, %s)", growth, figure.Time(largeCost), figure.Time(smallCost)),
		Verdict: figure.Judge(growth <= 1.1),
	})
	if err := add(r.hugeService(ctx, all)); err != nil {
		return table, err
	}
	if err := add(r.latencyUnderUpdates(ctx, all)); err != nil {
		return table, err
	}
	return table, add(r.propagation(ctx, all))
}

// last is the name of the host that is answered once everything is.
func (r *scaleRun) last() string { return r.hostname(len(r.set.Imports) - 1) }

// hostname is the name of an endpoint of a service: the first of the slice that mover moves.
func (r *scaleRun) hostname(service int) string {
	return "db-0.east." + r.set.Name(fmt.Sprintf("db-%d", service))
}

// awaitAll waits until all servers have everything.
func (r *scaleRun) awaitAll(ctx context.Context, all []*servers.Server) error {
	for _, server := range all {
		if err := await(ctx, server, r.last(), dns.TypeA, wire.Answered); err != nil {
			return err
		}
	}
	// What was listed has been answered; what came since is there once a further change is.
	return r.mark(ctx, all)
}

// mark changes an endpoint and waits until all servers answer with it, so that all that was written before is in them.
func (r *scaleRun) mark(ctx context.Context, all []*servers.Server) error {
	r.marks++
	service := r.marks % r.smallServices
	address := r.set.NextAddress().String()
	if _, err := r.plane.writer.Move(ctx, r.firstSlice(service), address); err != nil {
		return err
	}
	for _, server := range all {
		if err := await(ctx, server, r.hostname(service), dns.TypeA, wire.HasAddress(address)); err != nil {
			return err
		}
	}
	return nil
}

// startSample is what a start came to.
type startSample struct{ answer, cpu, heap, resident, peak float64 }

// starts measures starts, and the memory of servers after them, in turns.
func (r *scaleRun) starts(ctx context.Context) ([]figure.Figure, error) {
	kinds := []servers.Kind{servers.Ours, servers.Stock, servers.Idle}
	samples := map[servers.Kind][]startSample{}
	rounds := min(r.rounds, 3)
	for round := range rounds {
		for turn := range kinds {
			kind := kinds[(turn+round)%len(kinds)]
			sample, err := r.start(ctx, kind)
			if err != nil {
				return nil, err
			}
			r.say("start of %s, round %d: answers after %s, heap %s", kind, round+1, figure.Time(sample.answer), figure.Bytes(sample.heap))
			samples[kind] = append(samples[kind], sample)
		}
	}
	of := func(kind servers.Kind, number func(startSample) float64) []float64 {
		var all []float64
		for _, sample := range samples[kind] {
			all = append(all, number(sample))
		}
		return all
	}
	n := float64(r.endpoints())
	heap := func(kind servers.Kind) []float64 { return of(kind, func(s startSample) float64 { return s.heap }) }
	perEndpoint := figure.Median(heap(servers.Ours)) / n
	heapRatio := figure.Ratio(heap(servers.Ours), heap(servers.Stock))
	what := fmt.Sprintf("%s imports, %s slices, %s endpoints: ", thousands(len(r.set.Imports)), thousands(len(r.set.Slices)), thousands(r.endpoints()))
	net := func(kind servers.Kind) float64 {
		return (figure.Median(heap(kind)) - figure.Median(heap(servers.Idle))) / n
	}
	figures := []figure.Figure{{
		What: what + "live heap", Goal: "≤ 80 bytes per endpoint, ≤ 1/10 of stock",
		Measured: fmt.Sprintf("%.0f bytes per endpoint, %.3f × stock (ours %s, stock %s = %.0f bytes, idle %s; more than idle: ours %.0f, stock %.0f bytes)",
			perEndpoint, heapRatio, figure.Bytes(figure.Median(heap(servers.Ours))), figure.Bytes(figure.Median(heap(servers.Stock))),
			figure.Median(heap(servers.Stock))/n, figure.Bytes(figure.Median(heap(servers.Idle))), net(servers.Ours), net(servers.Stock)),
		Verdict: figure.Judge(perEndpoint <= 80, heapRatio <= 0.1),
	}}
	compare := func(what, goal string, limit float64, show func(float64) string, number func(startSample) float64) {
		ratio := figure.Ratio(of(servers.Ours, number), of(servers.Stock, number))
		f := figure.Figure{What: what, Goal: goal, Measured: fmt.Sprintf("%.2f × (ours %s, stock %s, idle %s)", ratio,
			show(figure.Median(of(servers.Ours, number))), show(figure.Median(of(servers.Stock, number))), show(figure.Median(of(servers.Idle, number))))}
		if goal != "" {
			f.Verdict = figure.Judge(ratio <= limit)
		}
		figures = append(figures, f)
	}
	compare("resident memory (RSS) a few seconds after the start", "≤ ¼ of stock", 0.25, figure.Bytes, func(s startSample) float64 { return s.resident })
	compare("the most that was resident", "", 0, figure.Bytes, func(s startSample) float64 { return s.peak })
	compare("start to the first headless answer", "≤ ⅓ of stock", 1.0/3, figure.Time, func(s startSample) float64 { return s.answer })
	compare("processor time until then", "", 0, figure.Time, func(s startSample) float64 { return s.cpu })
	return figures, nil
}

// start starts a server, waits until it has everything, and stops it.
func (r *scaleRun) start(ctx context.Context, kind servers.Kind) (sample startSample, err error) {
	all, stop, err := r.startServers(ctx, servers.AnyCore, r.plane.kubeconfig, kind)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	server := all[0]
	if err := await(ctx, server, r.last(), dns.TypeA, wire.Answered); err != nil {
		return sample, err
	}
	sample.answer = float64(time.Since(server.Began))
	used, err := server.CPU()
	if err != nil {
		return sample, err
	}
	sample.cpu = float64(used)
	if err := r.mark(ctx, all); err != nil {
		return sample, err
	}
	if sample.heap, err = server.LiveHeap(ctx); err != nil {
		return sample, err
	}
	sample.resident, sample.peak, err = r.settled(ctx, server)
	return sample, err
}

// settled is the memory of a server once it no longer shrinks: the runtime gives pages back bit by bit.
func (r *scaleRun) settled(ctx context.Context, server *servers.Server) (resident, peak float64, err error) {
	ticker := time.NewTicker(r.settle)
	defer ticker.Stop()
	for before := 0.0; ; before = resident {
		if resident, peak, err = server.Memory(); err != nil {
			return 0, 0, err
		}
		if before > 0 && resident > 0.99*before {
			return resident, peak, nil
		}
		select {
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		case <-ticker.C:
		}
	}
}
