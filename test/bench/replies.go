// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/floor"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/reply"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
)

const repliesText = `
What a plugin takes to answer one query and to pack the reply, in one process, on the objects of a real API server:
processor time, without that of the garbage collector, which runs between the turns and costs in proportion to the bytes
allocated, which are stated. Each figure is a ratio of *ours*, plugin multicluster, to the least
that a plugin can do: *floor* has the same records at hand and writes them; *cut* has those of them that fit the client's
buffer. *Stock* is CoreDNS's plugin kubernetes with its option multicluster, for
comparison. "Scrubbed" is with what the server does before it packs (OPT, size, compression). Queries have EDNS with
1,232 octets.`

// replyCase is one query and its goal.
type replyCase struct {
	what        string
	name        string
	qtype       uint16
	path        reply.Path
	against     string // floor or cut
	ratio       float64
	allocations float64 // 0: no goal
	rcode       int
	empty       bool // the answer has no records
}

// replies measures single replies.
func replies(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Replies", Text: repliesText}
	p, err := startPlane(ctx, "replies")
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()

	few, many := &objects.Set{Namespace: "few"}, &objects.Set{Namespace: "many"}
	few.ClusterSetIP(b.few)
	for _, endpoints := range b.headless {
		few.Headless(fmt.Sprintf("db-%d", endpoints), endpoints)
	}
	many.ClusterSetIP(b.many)
	b.say("writing %d imports and %d slices", len(few.Imports)+len(many.Imports), len(few.Slices))
	for _, set := range []*objects.Set{few, many} {
		if err := p.writer.Create(ctx, set, 0, 0); err != nil {
			return table, err
		}
	}
	// Stock is set up first: it replaces the logger that all clients of this process share.
	kinds := []servers.Kind{servers.Stock, servers.Ours}
	handlers := map[servers.Kind]plugin.Handler{}
	for _, kind := range kinds {
		instance, err := reply.Start(string(kind), kind, p.kubeconfig, few.Namespace)
		if err != nil {
			return table, err
		}
		defer func() { err = errors.Join(err, instance.Stop()) }()
		handlers[kind] = instance.Handler
	}
	for _, c := range replyCases(few, b.headless) {
		f, err := b.reply(ctx, c, handlers[servers.Ours], handlers[servers.Stock])
		if err != nil {
			return table, fmt.Errorf("%s: %w", c.what, err)
		}
		table.Figures = append(table.Figures, f...)
	}
	all, err := reply.Start("all", servers.Ours, p.kubeconfig)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, all.Stop()) }()
	f, err := b.growth(ctx, few, handlers[servers.Ours], all.Handler)
	table.Figures = append(table.Figures, f)
	return table, err
}

// replyCases are the queries, on the set's services.
func replyCases(set *objects.Set, headless [4]int) []replyCase {
	web := set.Name("web-7")
	cases := []replyCase{
		{what: "ClusterSetIP A, packed", name: web, qtype: dns.TypeA, path: reply.UDP, against: "floor", ratio: 1.25, allocations: 4},
		{what: "ClusterSetIP A, scrubbed for UDP", name: web, qtype: dns.TypeA, path: reply.ScrubbedUDP, against: "floor", ratio: 1.2, allocations: 8},
		{what: "AAAA NODATA, packed", name: web, qtype: dns.TypeAAAA, path: reply.UDP, against: "floor", ratio: 1.3, allocations: 5, empty: true},
		{what: "NXDOMAIN, packed", name: set.Name("none"), qtype: dns.TypeA, path: reply.UDP, against: "floor", ratio: 1.3, allocations: 5, rcode: dns.RcodeNameError, empty: true},
	}
	for _, n := range []int{headless[0], headless[2], headless[3]} {
		service := fmt.Sprintf("db-%d", n)
		cases = append(cases, replyCase{
			what: fmt.Sprintf("one host name among %s, packed", thousands(n)),
			name: "db-3.east." + set.Name(service), qtype: dns.TypeA, path: reply.UDP, against: "floor", ratio: 1.3,
		})
	}
	for _, n := range headless[1:3] {
		service := set.Name(fmt.Sprintf("db-%d", n))
		for _, way := range []struct {
			suffix string
			path   reply.Path
		}{{"packed", reply.Packed}, {"TCP", reply.ScrubbedTCP}} {
			cases = append(cases,
				replyCase{what: fmt.Sprintf("headless A of %s, %s", thousands(n), way.suffix), name: service, qtype: dns.TypeA, path: way.path, against: "floor", ratio: 1.2},
				replyCase{what: fmt.Sprintf("headless SRV of %s, %s", thousands(n), way.suffix), name: "_sql._tcp." + service, qtype: dns.TypeSRV, path: way.path, against: "floor", ratio: 1.2})
		}
	}
	large := set.Name(fmt.Sprintf("db-%d", headless[2]))
	return append(cases,
		replyCase{what: fmt.Sprintf("headless A of %s, UDP 1232", thousands(headless[2])), name: large, qtype: dns.TypeA, path: reply.ScrubbedUDP, against: "cut", ratio: 1.5},
		replyCase{what: fmt.Sprintf("headless SRV of %s, UDP 1232", thousands(headless[2])), name: "_sql._tcp." + large, qtype: dns.TypeSRV, path: reply.ScrubbedUDP, against: "cut", ratio: 1.5, allocations: 25})
}

// bufferSize is what the clients take over UDP.
const bufferSize = 1232

func newQuery(name string, qtype uint16) *dns.Msg {
	r := new(dns.Msg).SetQuestion(name, qtype)
	r.SetEdns0(bufferSize, false)
	return r
}

// reply measures one case.
func (b *bench) reply(ctx context.Context, c replyCase, ours, stock plugin.Handler) ([]figure.Figure, error) {
	b.say("%s", c.what)
	r := newQuery(c.name, c.qtype)
	got, err := reply.Ask(ctx, ours, c.path, r)
	if err != nil {
		return nil, err
	}
	if got.Rcode != c.rcode || (len(got.Answer) == 0) != c.empty {
		return nil, fmt.Errorf("the reply is not what is to be measured:\n%s", got)
	}
	var against plugin.Handler
	records := ""
	if c.against == "cut" {
		full, err := reply.Ask(ctx, ours, reply.Packed, r)
		if err != nil {
			return nil, err
		}
		cut := floor.Cut(full, bufferSize)
		if !got.Truncated || len(got.Answer) > cut.Len() {
			return nil, fmt.Errorf("%d of %d records are in the reply, truncated %v, and %d fit", len(got.Answer), len(full.Answer), got.Truncated, cut.Len())
		}
		records = fmt.Sprintf("; %d records, cut %d", len(got.Answer), cut.Len())
		against = cut
	} else {
		against = floor.New(got)
	}
	measurement := reply.Measurement{Rounds: b.rounds, Batches: 16, Batch: b.batch}
	costs, err := measurement.Run(ctx, c.path, r, ours, against, stock)
	if err != nil {
		return nil, err
	}
	ratio := figure.Ratio(costs[0].Time, costs[1].Time)
	f := figure.Figure{
		What: c.what,
		Goal: fmt.Sprintf("≤ %s × %s", figure.Number(c.ratio), c.against),
		Measured: fmt.Sprintf("%.2f × (ours %s, %s %s, stock %s; allocations %.0f, %.0f, %.0f: %s, %s, %s%s)", ratio,
			figure.Time(figure.Median(costs[0].Time)), c.against, figure.Time(figure.Median(costs[1].Time)), figure.Time(figure.Median(costs[2].Time)),
			costs[0].Allocations, costs[1].Allocations, costs[2].Allocations,
			figure.Bytes(math.Round(costs[0].Bytes)), figure.Bytes(math.Round(costs[1].Bytes)), figure.Bytes(math.Round(costs[2].Bytes)), records),
		Verdict: figure.Judge(ratio <= c.ratio),
	}
	if c.allocations > 0 {
		f.Goal += fmt.Sprintf(", ≤ %.0f allocations", c.allocations)
		f.Verdict = figure.Judge(ratio <= c.ratio, costs[0].Allocations < c.allocations+0.5)
	}
	return []figure.Figure{f}, nil
}

// growth compares a reply among many imports with one among few.
func (b *bench) growth(ctx context.Context, set *objects.Set, few, all plugin.Handler) (figure.Figure, error) {
	f := figure.Figure{What: fmt.Sprintf("ClusterSetIP A among %s imports against %s", thousands(b.few+b.many), thousands(b.few)), Goal: "≤ 1.1 ×"}
	b.say("%s", f.What)
	measurement := reply.Measurement{Rounds: b.rounds, Batches: 32, Batch: b.batch}
	costs, err := measurement.Run(ctx, reply.UDP, newQuery(set.Name("web-7"), dns.TypeA), all, few)
	if err != nil {
		return f, err
	}
	ratio := figure.Ratio(costs[0].Time, costs[1].Time)
	f.Measured = fmt.Sprintf("%.2f × (%s, %s)", ratio, figure.Time(figure.Median(costs[0].Time)), figure.Time(figure.Median(costs[1].Time)))
	f.Verdict = figure.Judge(ratio <= 1.1)
	return f, nil
}

// thousands writes a number as people do.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
