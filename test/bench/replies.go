// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/floor"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/reply"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
)

const repliesText = `
Processor time of one reply in one process, without garbage collection: the plugin, the server's
scrubbing (OPT, size, compression), and packing, for a client over UDP with EDNS and 1,232 octets.
Here, prebuilt has only this reply, or replies in the order of the names, and looks up nothing.`

// replyCase is one query and its goal.
type replyCase struct {
	what  string
	name  string
	qtype uint16
	ratio float64 // the goal, against prebuilt
	why   string
	cut   bool // it does not fit
	names int  // how many ClusterSetIP services are asked for in random order, if more than one
}

// replies measures single replies.
func replies(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Single replies", Text: repliesText, Columns: []string{"ours", "stock", "prebuilt"}}
	p, err := startPlane(ctx, "replies")
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()

	set := &objects.Set{Namespace: "replies"}
	set.ClusterSetIP(b.names[1])
	for _, endpoints := range b.headless {
		set.Headless(fmt.Sprintf("db-%d", endpoints), endpoints)
	}
	b.say("writing %d imports and %d slices", len(set.Imports), len(set.Slices))
	if err := p.writer.Create(ctx, set, 0, 0); err != nil {
		return table, err
	}
	// Stock is set up first: it replaces the logger that all clients of this process share.
	kinds := []servers.Kind{servers.Stock, servers.Ours}
	handlers := map[servers.Kind]plugin.Handler{}
	for _, kind := range kinds {
		instance, err := reply.Start(string(kind), kind, p.kubeconfig, set.Namespace)
		if err != nil {
			return table, err
		}
		defer func() { err = errors.Join(err, instance.Stop()) }()
		handlers[kind] = instance.Handler
	}
	for _, c := range replyCases(set, b.size) {
		f, err := b.reply(ctx, set, c, handlers[servers.Ours], handlers[servers.Stock])
		if err != nil {
			return table, fmt.Errorf("%s: %w", c.what, err)
		}
		table.Figures = append(table.Figures, f)
	}
	return table, nil
}

// replyCases are the queries, on the set's services.
func replyCases(set *objects.Set, size size) []replyCase {
	headless := size.headless
	web, large := set.Name("web-7"), set.Name(fmt.Sprintf("db-%d", headless[0]))
	const lookup, choice = "prebuilt looks up nothing", "ours chooses the records that fit"
	host := fmt.Sprintf("db-%d", headless[1])
	return []replyCase{
		{what: "ClusterSetIP A", name: web, qtype: dns.TypeA, ratio: 1.2, why: lookup},
		{
			what: "the same, of " + thousands(size.names[0]) + " names in random order", name: web, qtype: dns.TypeA,
			ratio: 1.3, why: lookup, names: size.names[0],
		},
		{
			what: "the same, of " + thousands(size.names[1]) + " names in random order", name: web, qtype: dns.TypeA,
			ratio: 1.3, why: lookup, names: size.names[1],
		},
		{
			what: "one host name of " + thousands(headless[1]), name: "db-3.east." + set.Name(host), qtype: dns.TypeA,
			ratio: 1.3, why: lookup,
		},
		{
			what: "headless A of " + thousands(headless[0]), name: large, qtype: dns.TypeA, ratio: 1.25, why: choice,
			cut: true,
		},
	}
}

// bufferSize is what the clients take over UDP.
const bufferSize = 1232

func newQuery(name string, qtype uint16) *dns.Msg {
	r := new(dns.Msg).SetQuestion(name, qtype)
	r.SetEdns0(bufferSize, false)
	return r
}

// reply measures one case.
func (b *bench) reply(
	ctx context.Context, set *objects.Set, c replyCase, ours, stock plugin.Handler,
) (f figure.Figure, err error) {
	b.say("%s", c.what)
	r := newQuery(c.name, c.qtype)
	got, err := reply.Ask(ctx, ours, reply.ScrubbedUDP, r)
	if err != nil {
		return f, err
	}
	if len(got.Answer) == 0 || got.Truncated != c.cut {
		return f, fmt.Errorf("the reply is not what is to be measured:\n%s", got)
	}
	var prebuilt plugin.Handler = floor.New(got)
	var names []string
	if c.names > 1 {
		if names, prebuilt, err = randomNames(ctx, set, c, ours, r); err != nil {
			return f, err
		}
	}
	if c.cut {
		full, err := reply.Ask(ctx, ours, reply.Packed, r)
		if err != nil {
			return f, err
		}
		cut := floor.Cut(full, bufferSize)
		if len(got.Answer) > cut.Len() {
			return f, fmt.Errorf("%d of %d records are in the reply, and %d fit", len(got.Answer), len(full.Answer),
				cut.Len())
		}
		prebuilt = cut
	}
	measurement := reply.Measurement{Rounds: b.rounds, Batches: 16, Batch: b.batch}
	costs, err := measurement.Run(ctx, reply.ScrubbedUDP, r, names, ours, stock, prebuilt)
	if err != nil {
		return f, err
	}
	samples := map[servers.Kind][]float64{servers.Ours: costs[0], servers.Stock: costs[1], servers.Floor: costs[2]}
	return figure.Figure{
		What: c.what, Goal: fmt.Sprintf("≤ %s × prebuilt", figure.Number(c.ratio)), Cells: beside(samples, figure.Time),
		Verdict: figure.Judge(figure.Ratio(costs[0], costs[2]) <= c.ratio), Why: c.why,
	}, nil
}

// randomNames are the names of a case in random order, and what replies to them in that order.
func randomNames(
	ctx context.Context, set *objects.Set, c replyCase, ours plugin.Handler, r *dns.Msg,
) (names []string, prebuilt plugin.Handler, err error) {
	floors := make([]*floor.Floor, c.names)
	names = make([]string, c.names)
	for i := range names {
		names[i] = set.Name(fmt.Sprintf("web-%d", i))
		r.Question[0].Name = names[i]
		got, err := reply.Ask(ctx, ours, reply.ScrubbedUDP, r)
		if err != nil {
			return nil, nil, err
		}
		floors[i] = floor.New(got)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(c.names, func(i, j int) {
		names[i], names[j] = names[j], names[i]
		floors[i], floors[j] = floors[j], floors[i]
	})
	return names, floor.NewSequence(floors), nil
}

// thousands writes a number with thousands separators.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
