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
Whole servers over UDP on loopback, under as much load as dnsperf generates, with one core for each:
70 % ClusterSetIP A, 10 % AAAA NODATA, 10 % NXDOMAIN, 5 % headless A of 10 endpoints, 5 % SRV.`

// Cores of the server and of what asks it.
const (
	serverCore = 1
	clientCore = 0
)

// mixed measures whole servers under a mixed load.
func mixed(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Queries", Text: mixedText, Columns: []string{"ours", "stock", "prebuilt"}}
	qps := figure.Figure{What: "queries per second of the core's time", Goal: "≥ 0.97 × prebuilt"}
	cpu := figure.Figure{What: "processor time per query"}
	if missing := wire.HaveDnsperf(); missing != nil {
		for _, f := range []figure.Figure{qps, cpu} {
			f.Cells, f.Verdict = []string{missing.Error()}, figure.NotMeasured
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
	set.ClusterSetIP(b.imports)
	for i := range b.tens {
		set.Headless(fmt.Sprintf("db-%d", i), 10)
	}
	if err := p.writer.Create(ctx, set, 0, 0); err != nil {
		return table, err
	}
	all, stop, err := b.startServers(ctx, serverCore, p.kubeconfig, servers.Ours, servers.Stock)
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
	if err := os.WriteFile(queries, []byte(mixedQueries(set, b.imports, b.tens)), 0o600); err != nil {
		return table, err
	}
	floor, stopFloor, err := b.startServers(ctx, serverCore, all[0].Address+" "+queries, servers.Floor)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, stopFloor()) }()
	if err := await(ctx, floor[0], set.Name("db-0"), dns.TypeA, wire.Answered); err != nil {
		return table, err // it listens once it has all replies
	}
	cost, err := b.mixedRounds(ctx, append(all, floor...), queries)
	if err != nil {
		return table, err
	}
	capacity := map[servers.Kind][]float64{}
	for kind, costs := range cost {
		for _, c := range costs {
			capacity[kind] = append(capacity[kind], 1e9/c)
		}
	}
	count := func(n float64) string { return thousands(int(n)) }
	qps.Cells = beside(capacity, count)
	qps.Verdict = figure.Judge(figure.Ratio(capacity[servers.Ours], capacity[servers.Floor]) >= 0.97)
	cpu.Cells = beside(cost, figure.Time)
	table.Figures = []figure.Figure{qps, cpu}
	return table, nil
}

// beside are the cells of ours, stock and prebuilt.
func beside(samples map[servers.Kind][]float64, show func(float64) string) []string {
	cells := []string{show(figure.Median(samples[servers.Ours]))}
	for _, kind := range []servers.Kind{servers.Stock, servers.Floor} {
		cells = append(cells, divided(samples[servers.Ours], samples[kind], show))
	}
	return cells
}

// divided is a cell with the median of other, and that of ours divided by it.
func divided(ours, other []float64, show func(float64) string) string {
	ratio, digits := figure.Ratio(ours, other), 2
	if ratio < 0.1 {
		digits = 3
	}
	return fmt.Sprintf("%s (%.*f ×)", show(figure.Median(other)), digits, ratio)
}

// mixedRounds puts the load on the servers in turns. For each round it returns the nanoseconds of processor time per
// query.
func (b *bench) mixedRounds(ctx context.Context, all []*servers.Server,
	queries string,
) (map[servers.Kind][]float64, error) {
	cost := map[servers.Kind][]float64{}
	for round := range b.rounds + 1 {
		b.say("mixed load, round %d of %d", round, b.rounds)
		for turn := range all {
			server := all[(turn+round)%len(all)]
			used, result, err := b.load(ctx, server,
				wire.Load{Queries: queries, Duration: b.load1, PerSecond: b.perSecond, Core: clientCore})
			if err != nil {
				return nil, err
			}
			if round == 0 {
				continue // it warms up
			}
			cost[server.Kind] = append(cost[server.Kind], float64(used)/float64(result.Completed))
		}
	}
	return cost, nil
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

// await waits until a server's reply is as wanted. That of an idle one never changes.
func await(ctx context.Context, server *servers.Server, name string, qtype uint16, wanted func(*dns.Msg) bool) error {
	if server.Kind == servers.Idle {
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
func (b *bench) load(ctx context.Context, server *servers.Server,
	load wire.Load,
) (time.Duration, wire.LoadResult, error) {
	load.Address = server.Address
	var result wire.LoadResult
	used, err := usedBy([]*servers.Server{server}, func() (err error) {
		result, err = load.Run(ctx)
		return err
	})
	if err != nil {
		return 0, result, err
	}
	if result.Completed == 0 {
		return 0, result, fmt.Errorf("%s answered no query", server.Kind)
	}
	return used[0], result, nil
}
