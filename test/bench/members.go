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
gives an endpoint another address; its time lasts from the request there to the first answer here.`

const namespace = "shop"

// memberRun is what the measurements of joined clusters share. East exports, west imports.
type memberRun struct {
	*joinedClusters
	exports *objects.Exports
}

// members measures controllers.
func members(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Joined clusters", Text: membersText, Columns: []string{"measured"}}
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
	imported, err := r.export(ctx, b.exports)
	if err != nil {
		return table, err
	}
	after, err := r.westController.LiveHeap(ctx)
	if err != nil {
		return table, err
	}
	followed, err := r.follow(ctx, 50*time.Millisecond, b.followed)
	table.Figures = append(table.Figures, imported, figure.Figure{
		What:  "live heap of the controller per imported endpoint",
		Cells: cell("%.0f B", (after-before)/float64(b.exports*objects.PerSlice)),
	}, followed)
	return table, err
}

// cell is the only cell of a row.
func cell(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }

// controllers are the exporting one and the importing one.
func (r *memberRun) controllers() []*servers.Process {
	return []*servers.Process{r.eastController, r.westController}
}

// export exports so many more services in east and returns when west has imported them and answers for them.
func (r *memberRun) export(ctx context.Context, count int) (f figure.Figure, err error) {
	f = figure.Figure{
		What: fmt.Sprintf("%s services exported there → all imported and answered here", thousands(count)),
		Goal: "≤ 7 s",
	}
	r.say("%s", f.What)
	first := len(r.exports.Services)
	slices := len(r.exports.Slices)
	for range count {
		r.exports.Headless(objects.PerSlice)
	}
	if err := r.east.writer.CreateServices(ctx, r.exports, first, slices); err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var imported, answered time.Duration
	began := time.Now()
	used, err := usedBy(r.controllers(), func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return r.east.writer.Export(ctx, r.exports.Services[first:]) })
		group.Go(func() error {
			err := r.west.writer.AwaitImports(ctx, namespace, len(r.exports.Services))
			imported = time.Since(began)
			return err
		})
		group.Go(func() error {
			err := r.awaitAnswers(ctx, first, len(r.exports.Services),
				func(reply *dns.Msg) bool { return len(reply.Answer) == objects.PerSlice })
			answered = time.Since(began)
			return err
		})
		return group.Wait()
	})
	if err != nil {
		return f, err
	}
	f.Cells = cell("%s; processor time: %s here, %s there",
		figure.Time(float64(max(imported, answered))), figure.Time(float64(used[1])), figure.Time(float64(used[0])))
	f.Verdict = figure.Judge(max(imported, answered) <= 7*time.Second)
	return f, nil
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
		if _, err := client.Await(ctx, name, dns.TypeA, 2*time.Millisecond, wanted, r.broken); err != nil {
			return err
		}
	}
	return nil
}

// broken is an error where a process ended that is to run.
func (r *memberRun) broken() error {
	return errors.Join(r.eastController.Err(), r.westController.Err(), r.dns.Err())
}

// follow changes an endpoint of one service after the other, an interval apart, and measures when that is answered. A service
// that changes faster than ten times a second waits for its turn, and is not measured here.
func (r *memberRun) follow(ctx context.Context, interval time.Duration, count int) (figure.Figure, error) {
	f := figure.Figure{
		What: fmt.Sprintf("endpoint changed there → answer changed here, a change of another service every %d ms",
			interval.Milliseconds()),
		Goal: "p50 ≤ 17 ms, p99 ≤ 28 ms",
	}
	r.say("%s", f.What)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(count)*interval+time.Minute)
	defer cancel()
	client, err := wire.Dial(ctx, r.dns.Address)
	if err != nil {
		return f, err
	}
	defer client.Close()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var writes, late []time.Duration
	for i := range count {
		<-ticker.C
		i %= len(r.exports.Services)
		name := "db-0.east." + r.exports.Name(r.exports.Services[i].Name)
		address, began := r.exports.NextAddress().String(), time.Now()
		written, err := r.east.writer.Move(ctx, r.exports.Slices[i], address)
		if err != nil {
			return f, err
		}
		// It takes longer than the API server's response.
		answered, err := client.Await(ctx, name, dns.TypeA, 200*time.Microsecond, wire.HasAddress(address), r.broken)
		if err != nil {
			return f, err
		}
		writes, late = append(writes, written.Sub(began)), append(late, answered.Sub(began))
	}
	p50, p99 := figure.Quantile(late, 0.5), figure.Quantile(late, 0.99)
	f.Cells = cell("p50 %s, p99 %s; of it, the write there: %s, %s",
		figure.Time(float64(p50)), figure.Time(float64(p99)),
		figure.Time(float64(figure.Quantile(writes, 0.5))), figure.Time(float64(figure.Quantile(writes, 0.99))))
	f.Verdict = figure.Judge(p50 <= 17*time.Millisecond, p99 <= 28*time.Millisecond)
	return f, nil
}
