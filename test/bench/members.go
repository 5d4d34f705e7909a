// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
)

const membersText = `
Two real control planes that are members of each other, on one machine, with a controller in each,
and our CoreDNS in the importing one (*here*). Services are headless with ten endpoints. A change
gives an endpoint another address; its time lasts from the request there to the first answer here.
One service changes every 50 ms. Floors are plain clients that send the same requests, in turns with
the controllers for changes, and once the controllers have ended for exports.`

const namespace = "shop"

// memberRun is what the measurements of joined clusters share. East exports, west imports.
type memberRun struct {
	*joinedClusters
	exports *objects.Exports
}

// members measures controllers.
func members(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Joined clusters", Text: membersText, Columns: []string{"measured", "floor", "ratio"}}
	j, err := b.join(ctx)
	defer func() { err = errors.Join(err, j.stop()) }()
	if err != nil {
		return table, err
	}
	r := &memberRun{joinedClusters: j, exports: &objects.Exports{Set: objects.Set{Namespace: namespace}}}
	for _, p := range []*plane{j.east, j.west} {
		if err := p.writer.Namespace(ctx, namespace); err != nil {
			return table, err
		}
	}
	before, err := r.westController.LiveHeap(ctx)
	if err != nil {
		return table, err
	}
	exported, used, err := r.export(ctx, b.exports)
	if err != nil {
		return table, err
	}
	after, err := r.westController.LiveHeap(ctx)
	if err != nil {
		return table, err
	}
	changed, relayed, err := r.inTurns(ctx)
	if err != nil {
		return table, err
	}
	copied, err := r.copied(ctx)
	if err != nil {
		return table, err
	}
	took := float64(copied)
	ratio := float64(exported) / took
	late, floor := quantiles(changed), quantiles(relayed)
	table.Figures = []figure.Figure{
		{
			What: thousands(b.exports) + " exports → imported and answered", Goal: "ratio ≤ 1.3",
			Cells:   []string{figure.Time(float64(exported)), figure.Time(took), fmt.Sprintf("%.2f", ratio)},
			Verdict: figure.Judge(ratio <= 1.3),
		},
		beside("one change: p50, p99", late, floor, figure.Time),
		{
			What:  "CPU of the controllers for the exports: exporter, importer",
			Cells: cell("%s, %s", figure.Time(float64(used[0])), figure.Time(float64(used[1]))),
		},
		{
			What:  "live heap of the controller per imported endpoint",
			Cells: cell("%.0f B", (after-before)/float64(b.exports*objects.PerSlice)),
		},
	}
	change := &table.Figures[1]
	change.Goal = "floor + 5 ms, 10 ms"
	change.Verdict = figure.Judge(late[0] <= floor[0]+5e6, late[1] <= floor[1]+10e6)
	return table, nil
}

// cell is the only cell of a row.
func cell(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

// controllers are the exporting one and the importing one.
func (r *memberRun) controllers() []*servers.Process {
	return []*servers.Process{r.eastController, r.westController}
}

// export exports so many more services in east and returns how long it took until west had imported them and answered for
// them, and the processor time of the controllers.
func (r *memberRun) export(ctx context.Context, count int) (took time.Duration, used []time.Duration, err error) {
	r.say("%d exports", count)
	first := len(r.exports.Services)
	slices := len(r.exports.Slices)
	for range count {
		r.exports.Headless(objects.PerSlice)
	}
	if err := r.east.writer.CreateServices(ctx, r.exports, first, slices); err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	began := time.Now()
	used, err = usedBy(r.controllers(), func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return r.east.writer.Export(ctx, r.exports.Services[first:]) })
		group.Go(func() error { return r.west.writer.AwaitImports(ctx, namespace, len(r.exports.Services)) })
		group.Go(func() error {
			return r.awaitAnswers(ctx, first, len(r.exports.Services),
				func(reply *dns.Msg) bool { return len(reply.Answer) == objects.PerSlice })
		})
		return group.Wait()
	})
	return time.Since(began), used, err
}

// awaitAnswers returns when the replies for the services of these numbers are as wanted.
func (r *memberRun) awaitAnswers(ctx context.Context, first, last int, wanted func(*dns.Msg) bool) error {
	client, err := wire.Dial(ctx, r.dns.Address)
	if err != nil {
		return err
	}
	defer client.Close()
	for i := first; i < last; i++ {
		name := r.exports.Name(r.exports.Services[i].Name)
		if err := client.Await(ctx, name, dns.TypeA, 2*time.Millisecond, wanted, r.broken); err != nil {
			return err
		}
	}
	return nil
}

// broken is an error where a process ended that is to run.
func (r *memberRun) broken() error {
	err := r.dns.Err()
	for _, controller := range r.controllers() {
		if controller != nil {
			err = errors.Join(err, controller.Err())
		}
	}
	return err
}

// follow changes an endpoint of one service after the other, an interval apart, and measures when that is answered. A service
// that changes faster than ten times a second waits for its turn, and is not measured here.
func (r *memberRun) follow(ctx context.Context, interval time.Duration, count int) (took []time.Duration, err error) {
	r.say("%d changes, one every %s", count, interval)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(count)*interval+time.Minute)
	defer cancel()
	client, err := wire.Dial(ctx, r.dns.Address)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for i := range count {
		<-ticker.C
		i %= len(r.exports.Services)
		name := "db-0.east." + r.exports.Name(r.exports.Services[i].Name)
		address, began := r.exports.NextAddress().String(), time.Now()
		if err := r.east.writer.Move(ctx, r.exports.Slices[i], address); err != nil {
			return nil, err
		}
		// It takes longer than the API server's response.
		if err := client.Await(ctx, name, dns.TypeA, 200*time.Microsecond, wire.HasAddress(address), r.broken); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
