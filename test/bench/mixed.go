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
SRV (half of ClusterSetIP services, half of headless ones of 10). *Floor* answers from prebuilt records: the replies of ours, which it
asked for at its start.
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
	qps := figure.Figure{What: "mixed load, queries per second", Goal: "≥ 0.95 × floor"}
	cpu := figure.Figure{What: "mixed load, processor time per query", Goal: "≤ 1.2 × floor, ≤ 0.5 × stock"}
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
	if err := os.WriteFile(queries, []byte(mixedQueries(set, b.few, b.tens)), 0o600); err != nil {
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
	rate, cost, busy, err := b.mixedRounds(ctx, append(all, floor...), queries)
	if err != nil {
		return table, err
	}
	capacity := map[servers.Kind][]float64{}
	for kind, costs := range cost {
		for _, c := range costs {
			capacity[kind] = append(capacity[kind], 1e9/c)
		}
	}
	ratio := figure.Ratio(capacity[servers.Ours], capacity[servers.Floor])
	qps.Measured = fmt.Sprintf("%.2f × (ours %.0f, floor %.0f, stock %.0f; by the clock %.2f ×: %.0f, %.0f, %.0f, while the servers' core was theirs to %.0f, %.0f, %.0f %%)", ratio,
		figure.Median(capacity[servers.Ours]), figure.Median(capacity[servers.Floor]), figure.Median(capacity[servers.Stock]),
		figure.Ratio(rate[servers.Ours], rate[servers.Floor]),
		figure.Median(rate[servers.Ours]), figure.Median(rate[servers.Floor]), figure.Median(rate[servers.Stock]),
		100*figure.Median(busy[servers.Ours]), 100*figure.Median(busy[servers.Floor]), 100*figure.Median(busy[servers.Stock]))
	qps.Verdict = figure.Judge(ratio >= 0.95)
	toFloor, toStock := figure.Ratio(cost[servers.Ours], cost[servers.Floor]), figure.Ratio(cost[servers.Ours], cost[servers.Stock])
	cpu.Measured = fmt.Sprintf("%.2f × floor, %.2f × stock (ours %s, floor %s, stock %s)", toFloor, toStock,
		figure.Time(figure.Median(cost[servers.Ours])), figure.Time(figure.Median(cost[servers.Floor])), figure.Time(figure.Median(cost[servers.Stock])))
	cpu.Verdict = figure.Judge(toFloor <= 1.2, toStock <= 0.5)
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
func (b *bench) load(ctx context.Context, server *servers.Server, load wire.Load) (time.Duration, wire.LoadResult, error) {
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
