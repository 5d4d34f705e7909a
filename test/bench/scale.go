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
Headless services of 50 endpoints in five slices each, half of them with hostnames. *Idle* is
CoreDNS without a plugin that watches. An update moves one endpoint; client-go's decoding, which
both servers share, takes 94 to 99 µs of it. Ours prepares the records of a service when an endpoint
changes; stock searches them at each query. Memory is that of the process without the pages of its
program, which are the same for all.`

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
	r.say("writing %s imports and %s slices", thousands(len(r.set.Imports)-imports),
		thousands(len(r.set.Slices)-slices))
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
	table = figure.Table{Title: "Memory and updates", Text: scaleText, Columns: []string{"ours", "stock", "idle"}}
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
	large.Goal += ", ≤ 1.1 × the row above"
	large.Verdict = figure.Judge(large.Verdict == figure.Met, growth <= 1.1)
	table.Figures = append(table.Figures, small, large)
	if err := add(r.hugeServices(ctx, all)); err != nil {
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
type startSample struct{ answer, heap, resident, peak float64 }

// starts measures starts, and the memory of servers after them, in turns.
func (r *scaleRun) starts(ctx context.Context) (figures []figure.Figure, err error) {
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
			r.say("start of %s, round %d: answers after %s, heap %s", kind, round+1, figure.Time(sample.answer),
				figure.Bytes(sample.heap))
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
	add := func(what string, show func(float64) string, number func(startSample) float64) *figure.Figure {
		ours := of(servers.Ours, number)
		figures = append(figures, figure.Figure{What: what, Cells: []string{
			show(figure.Median(ours)), divided(ours, of(servers.Stock, number), show),
			show(figure.Median(of(servers.Idle, number))),
		}})
		return &figures[len(figures)-1]
	}
	n := float64(r.endpoints())
	what := fmt.Sprintf("live heap per endpoint, of %s endpoints", thousands(r.endpoints()))
	heap := func(s startSample) float64 { return s.heap / n }
	f := add(what, func(bytes float64) string { return fmt.Sprintf("%.0f B", bytes) }, heap)
	f.Goal, f.Verdict = "≤ 1/10 of stock", figure.Judge(figure.Ratio(of(servers.Ours, heap),
		of(servers.Stock, heap)) <= 0.1)
	resident := func(s startSample) float64 { return s.resident }
	idle := figure.Median(of(servers.Idle, resident))
	beyond := func(kind servers.Kind) float64 { return figure.Median(of(kind, resident)) - idle }
	f = add("resident memory without the program", figure.Bytes, resident)
	f.Goal, f.Verdict = "beyond idle ≤ ⅛ of stock", figure.Judge(8*beyond(servers.Ours) <= beyond(servers.Stock))
	add("peak of resident memory without the program", figure.Bytes, func(s startSample) float64 { return s.peak })
	answer := func(s startSample) float64 { return s.answer }
	f = add("start to the first headless answer", figure.Time, answer)
	f.Goal, f.Verdict = "≤ ⅓ of stock", figure.Judge(figure.Ratio(of(servers.Ours, answer),
		of(servers.Stock, answer)) <= 1.0/3)
	f.Why = "both wait for the API server and decode the same slices"
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
	if err := r.mark(ctx, all); err != nil {
		return sample, err
	}
	if sample.heap, err = server.LiveHeap(ctx); err != nil {
		return sample, err
	}
	sample.resident, sample.peak, err = r.settled(ctx, server)
	return sample, err
}

// settled is the private memory of a server once it no longer shrinks: the runtime gives pages back bit by bit.
func (r *scaleRun) settled(ctx context.Context, server *servers.Server) (resident, peak float64, err error) {
	ticker := time.NewTicker(r.settle)
	defer ticker.Stop()
	for before := 0.0; ; before = resident {
		if resident, peak, err = server.PrivateMemory(); err != nil {
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
