// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
)

const memoryText = `
Headless services of 50 endpoints in five slices each, half of them with hostnames. The heap is
compared with that of the same server with few services.`

// endpointsPerService is how many endpoints the services have.
const endpointsPerService = 50

// memory measures the heap of CoreDNS in a large clusterset.
func memory(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Memory", Text: memoryText, Columns: []string{"measured"}}
	p, err := startPlane(ctx, "memory")
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	server, err := b.startServer(ctx, servers.AnyCore, servers.Ours, p.kubeconfig)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, server.End()) }()
	set := &objects.Set{Namespace: "memory"}
	// grow writes services until there are so many, and returns the heap of the server once it has them.
	grow := func(services int) (float64, error) {
		imports, slices := len(set.Imports), len(set.Slices)
		for i := imports; i < services; i++ {
			set.Headless(fmt.Sprintf("db-%d", i), endpointsPerService)
		}
		b.say("writing %s slices", thousands(len(set.Slices)-slices))
		if err := p.writer.Create(ctx, set, imports, slices); err != nil {
			return 0, err
		}
		// The server has all that was written before a change that it answers.
		address := set.NextAddress().String()
		if err := p.writer.Move(ctx, set.Slices[0], address); err != nil {
			return 0, err
		}
		if err := await(ctx, server, "db-0.east."+set.Name("db-0"), wire.HasAddress(address)); err != nil {
			return 0, err
		}
		return server.LiveHeap(ctx)
	}
	few, err := grow(b.smallServices)
	if err != nil {
		return table, err
	}
	many, err := grow(b.largeServices)
	if err != nil {
		return table, err
	}
	added := (b.largeServices - b.smallServices) * endpointsPerService
	each := (many - few) / float64(added)
	table.Figures = []figure.Figure{{
		What: fmt.Sprintf("live heap of CoreDNS per endpoint, of %s endpoints", thousands(added)), Goal: "≤ 90 B",
		Cells: cell("%.0f B", each), Verdict: figure.Judge(each <= 90),
	}}
	return table, nil
}
