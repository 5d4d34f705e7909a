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
70 % ClusterSetIP A, 10 % AAAA NODATA, 10 % NXDOMAIN, 5 % headless A of 10 endpoints, 5 % SRV. The floor
is a CoreDNS server that looks up prebuilt records and writes them, the limit for any plugin.`

// Cores of the server and of what asks it.
const (
	serverCore = 1
	clientCore = 0
)

// mixed measures whole servers under a mixed load.
func mixed(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Queries", Text: mixedText, Columns: []string{"measured", "floor", "ratio"}}
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
	ours, err := b.startServer(ctx, serverCore, servers.Ours, p.kubeconfig)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, ours.End()) }()
	if err := await(ctx, ours, set.Name("db-0"), wire.Answered); err != nil {
		return table, err
	}
	queries := filepath.Join(b.dir, "mixed.queries")
	if err := os.WriteFile(queries, []byte(mixedQueries(set, b.imports, b.tens)), 0o600); err != nil {
		return table, err
	}
	floor, err := b.startServer(ctx, serverCore, servers.Floor, ours.Address+" "+queries)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, floor.End()) }()
	if err := await(ctx, floor, set.Name("db-0"), wire.Answered); err != nil {
		return table, err // it listens once it has all replies
	}
	cost, err := b.mixedRounds(ctx, []*servers.Server{ours, floor}, queries)
	if err != nil {
		return table, err
	}
	ratio := figure.Ratio(cost[servers.Ours], cost[servers.Floor])
	table.Figures = []figure.Figure{{
		What: "DNS, CPU per query", Goal: "ratio ≤ 1.03",
		Cells: []string{
			figure.Time(figure.Median(cost[servers.Ours])), figure.Time(figure.Median(cost[servers.Floor])),
			fmt.Sprintf("%.2f", ratio),
		},
		Verdict: figure.Judge(ratio <= 1.03),
	}}
	return table, nil
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
			load := wire.Load{
				Address: server.Address, Queries: queries, Duration: b.load, PerSecond: b.perSecond, Core: clientCore,
			}
			completed := 0
			used, err := usedBy([]*servers.Server{server}, func() (err error) {
				completed, err = load.Run(ctx)
				return err
			})
			switch {
			case err != nil:
				return nil, err
			case completed == 0:
				return nil, fmt.Errorf("%s answered no query", server.Kind)
			case round > 0: // the first one warms up
				cost[server.Kind] = append(cost[server.Kind], float64(used[0])/float64(completed))
			}
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

// await waits until a server's reply for an A record is as wanted.
func await(ctx context.Context, server *servers.Server, name string, wanted func(*dns.Msg) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := wire.Dial(ctx, server.Address)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Await(ctx, name, dns.TypeA, 5*time.Millisecond, wanted, server.Err); err != nil {
		return fmt.Errorf("%s: %w", server.Kind, err)
	}
	return nil
}
