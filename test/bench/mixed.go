// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
)

const mixedText = `
Whole servers, over UDP on loopback, under as much load as dnsperf puts on them: the server has one core and dnsperf the
other. The queries, with EDNS: 70 % ClusterSetIP A, 10 % AAAA NODATA, 10 % NXDOMAIN, 5 % headless A of 10 endpoints, 5 %
SRV (half of ClusterSetIP services, half of headless ones of 10). *Ceiling* answers each with one prebuilt A record.
Processor time is the server process's, over the queries that it answered. Queries per second are those of a second of the
core's time, which is what the clock shows when nothing else runs on the machine.`

// Cores of the server and of what asks it.
const (
	serverCore = 1
	clientCore = 0
)

// mixed measures whole servers under a mixed load.
func mixed(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "End to end", Text: mixedText}
	qps := figure.Figure{What: "mixed load, queries per second", Goal: "≥ 0.95 × ceiling"}
	cpu := figure.Figure{What: "mixed load, processor time per query", Goal: "≤ 1.2 × ceiling, ≤ 0.5 × stock"}
	if missing := wire.HaveDnsperf(); missing != nil {
		for _, f := range []figure.Figure{qps, cpu} {
			f.Measured, f.Verdict = missing.Error(), figure.NotMeasured
			table.Figures = append(table.Figures, f)
		}
		return table, nil
	}
	p, err := startPlane(ctx, "mixed")
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	set := &objects.Set{Namespace: "mixed"}
	set.ClusterSetIP(b.few)
	for i := range b.tens {
		set.Headless(fmt.Sprintf("db-%d", i), 10)
	}
	if err := p.writer.Create(ctx, set, 0, 0); err != nil {
		return table, err
	}
	all, stop, err := b.startServers(ctx, p, serverCore, servers.Kinds...)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, server := range all {
		if err := await(ctx, server, set.Name("db-0"), dns.TypeA, wire.Answered); err != nil {
			return table, err
		}
	}
	queries := filepath.Join(b.dir, "mixed.queries")
	if err := os.WriteFile(queries, []byte(mixedQueries(set, b.few, b.tens)), 0o600); err != nil {
		return table, err
	}
	rate, cost, busy, err := b.mixedRounds(ctx, all, queries)
	if err != nil {
		return table, err
	}
	capacity := map[servers.Kind][]float64{}
	for kind, costs := range cost {
		for _, c := range costs {
			capacity[kind] = append(capacity[kind], 1e9/c)
		}
	}
	ratio := figure.Ratio(capacity[servers.Ours], capacity[servers.Ceiling])
	qps.Measured = fmt.Sprintf("%.2f × (ours %.0f, ceiling %.0f, stock %.0f; by the clock %.2f ×: %.0f, %.0f, %.0f, while the servers' core was theirs to %.0f, %.0f, %.0f %%)", ratio,
		figure.Median(capacity[servers.Ours]), figure.Median(capacity[servers.Ceiling]), figure.Median(capacity[servers.Stock]),
		figure.Ratio(rate[servers.Ours], rate[servers.Ceiling]),
		figure.Median(rate[servers.Ours]), figure.Median(rate[servers.Ceiling]), figure.Median(rate[servers.Stock]),
		100*figure.Median(busy[servers.Ours]), 100*figure.Median(busy[servers.Ceiling]), 100*figure.Median(busy[servers.Stock]))
	qps.Verdict = figure.Judge(ratio >= 0.95)
	toCeiling, toStock := figure.Ratio(cost[servers.Ours], cost[servers.Ceiling]), figure.Ratio(cost[servers.Ours], cost[servers.Stock])
	cpu.Measured = fmt.Sprintf("%.2f × ceiling, %.2f × stock (ours %s, ceiling %s, stock %s)", toCeiling, toStock,
		figure.Time(figure.Median(cost[servers.Ours])), figure.Time(figure.Median(cost[servers.Ceiling])), figure.Time(figure.Median(cost[servers.Stock])))
	cpu.Verdict = figure.Judge(toCeiling <= 1.2, toStock <= 0.5)
	table.Figures = []figure.Figure{qps, cpu}
	return table, nil
}

// mixedRounds puts the load on the servers in turns. For each round it returns the queries per second by the clock, the
// nanoseconds of processor time per query, and the part of the time in which the server ran.
func (b *bench) mixedRounds(ctx context.Context, all []*servers.Server, queries string) (rate, cost, busy map[servers.Kind][]float64, err error) {
	rate, cost, busy = map[servers.Kind][]float64{}, map[servers.Kind][]float64{}, map[servers.Kind][]float64{}
	for round := range b.rounds + 1 {
		b.say("mixed load, round %d of %d", round, b.rounds)
		for turn := range all {
			server := all[(turn+round)%len(all)]
			used, result, err := b.load(ctx, server, wire.Load{Queries: queries, Duration: b.load1, PerSecond: b.perSecond, Core: clientCore})
			if err != nil {
				return nil, nil, nil, err
			}
			if round == 0 {
				continue // it warms up
			}
			each := float64(used) / float64(result.Completed)
			rate[server.Kind] = append(rate[server.Kind], result.PerSecond)
			cost[server.Kind] = append(cost[server.Kind], each)
			busy[server.Kind] = append(busy[server.Kind], each*result.PerSecond/1e9)
		}
	}
	return rate, cost, busy, nil
}

// mixedQueries is a file of queries for dnsperf, in an order that is the same always.
func mixedQueries(set *objects.Set, web, tens int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for i := range 10_000 {
		name, qtype := set.Name(fmt.Sprintf("web-%d", random.IntN(web))), "A"
		ten := set.Name(fmt.Sprintf("db-%d", random.IntN(tens)))
		switch draw := random.IntN(100); {
		case draw < 70:
		case draw < 80:
			qtype = "AAAA"
		case draw < 90:
			name = set.Name(fmt.Sprintf("none-%d", i))
		case draw < 95:
			name = ten
		case i%2 == 0:
			name, qtype = "_sql._tcp."+ten, "SRV"
		default:
			name, qtype = "_http._tcp."+name, "SRV"
		}
		fmt.Fprintf(&b, "%s %s\n", name, qtype)
	}
	return b.String()
}

// startServers starts a server of each kind.
func (b *bench) startServers(ctx context.Context, p *plane, core int, kinds ...servers.Kind) (all []*servers.Server, stop func() error, err error) {
	if err := b.buildServer(ctx); err != nil {
		return nil, nil, err
	}
	stop = func() error {
		var errs []error
		for _, server := range all {
			errs = append(errs, server.End())
		}
		return errors.Join(errs...)
	}
	for _, kind := range kinds {
		server, err := servers.Start(servers.Spec{Kind: kind, Program: b.program, Kubeconfig: p.kubeconfig, Dir: b.dir, Core: core})
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		all = append(all, server)
	}
	return all, stop, nil
}

// await waits until a server's reply is as wanted. The ceilings' never change.
func await(ctx context.Context, server *servers.Server, name string, qtype uint16, wanted func(*dns.Msg) bool) error {
	if server.Kind == servers.Ceiling || server.Kind == servers.Watch {
		wanted = wire.Answered
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := wire.Dial(ctx, server.Address)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Await(ctx, name, qtype, 5*time.Millisecond, wanted, server.Err); err != nil {
		return fmt.Errorf("%s: %w", server.Kind, err)
	}
	return nil
}

// load puts a load on a server, and tells how much processor time it used meanwhile.
func (b *bench) load(ctx context.Context, server *servers.Server, load wire.Load) (time.Duration, wire.LoadResult, error) {
	load.Address = server.Address
	if b.profiles != "" {
		stop := b.profile(ctx, server, load)
		defer stop()
	}
	before, err := server.CPU()
	if err != nil {
		return 0, wire.LoadResult{}, err
	}
	result, err := load.Run(ctx)
	if err != nil {
		return 0, result, err
	}
	after, err := server.CPU()
	if err != nil {
		return 0, result, err
	}
	if result.Completed == 0 {
		return 0, result, fmt.Errorf("%s answered no query", server.Kind)
	}
	return after - before, result, nil
}

// profile takes a profile of a server under load, the last of which stays. The returned function waits for its end.
func (b *bench) profile(ctx context.Context, server *servers.Server, load wire.Load) (stop func()) {
	done := make(chan error, 1)
	go func() {
		path := filepath.Join(b.profiles, string(server.Kind)+"."+filepath.Base(load.Queries))
		done <- server.Profile(ctx, fmt.Sprintf("profile?seconds=%d", max(1, int(load.Duration.Seconds())-1)), path)
	}()
	return func() {
		if err := <-done; err != nil {
			b.say("%v", err)
		}
	}
}
