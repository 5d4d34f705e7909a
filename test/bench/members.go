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
Two clusters that are members of each other, on one machine: two real control planes, a controller in each, and a CoreDNS
with plugin multicluster in the importing one. Services are headless with ten endpoints in one slice. A change is an
endpoint that gets another address in the exporting cluster; its time is from the beginning of the request that writes it
there to the first answer here that has it.`

const namespace = "shop"

// memberRun is what the measurements of joined clusters share. East exports, west imports.
type memberRun struct {
	*joinedClusters
	exports *objects.Exports
}

// members measures controllers.
func members(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Joined clusters", Text: membersText}
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
	if _, err := r.export(ctx, b.fewExports); err != nil {
		return table, err
	}
	small, err := r.sizes(ctx)
	if err != nil {
		return table, err
	}
	few, err := r.changeCost(ctx)
	if err != nil {
		return table, err
	}
	imported, err := r.export(ctx, b.manyExports)
	if err != nil {
		return table, err
	}
	large, err := r.sizes(ctx)
	if err != nil {
		return table, err
	}
	atRest, err := r.atRest(ctx)
	if err != nil {
		return table, err
	}
	many, err := r.changeCost(ctx)
	if err != nil {
		return table, err
	}
	added := float64(b.manyExports * objects.PerSlice)
	growth := figure.Ratio(many[1], few[1])
	table.Figures = append(table.Figures, imported,
		figure.Figure{
			What: "memory of the controller per imported endpoint",
			Measured: fmt.Sprintf("%.0f bytes of live heap here, %.0f bytes there per exported one (live heap with %s endpoints: %s here, %s there; resident %s, %s)",
				(large.heap[1]-small.heap[1])/added, (large.heap[0]-small.heap[0])/added, thousands(int(added)),
				figure.Bytes(large.heap[1]), figure.Bytes(large.heap[0]), figure.Bytes(large.resident[1]), figure.Bytes(large.resident[0])),
		},
		atRest,
		figure.Figure{
			What: fmt.Sprintf("processor time of the importing controller per change, among %s services against %s", thousands(b.fewExports+b.manyExports), thousands(b.fewExports)),
			Goal: "≤ 1.1 ×",
			Measured: fmt.Sprintf("%.2f × (%s, %s; the exporting one %s, %s)", growth,
				figure.Time(figure.Median(many[1])), figure.Time(figure.Median(few[1])), figure.Time(figure.Median(many[0])), figure.Time(figure.Median(few[0]))),
			Verdict: figure.Judge(growth <= 1.1),
		})
	for _, pace := range []struct {
		interval time.Duration
		count    int
	}{{700 * time.Millisecond, b.slowChanges}, {50 * time.Millisecond, b.fastChanges}} {
		f, err := r.follow(ctx, pace.interval, pace.count)
		if err != nil {
			return table, err
		}
		table.Figures = append(table.Figures, f)
	}
	withdrawn, err := r.withdraw(ctx)
	table.Figures = append(table.Figures, withdrawn)
	return table, err
}

// controllers are the exporting one and the importing one.
func (r *memberRun) controllers() []*servers.Process {
	return []*servers.Process{r.eastController, r.westController}
}

// export exports so many more services in east and returns when west has imported them and answers for them.
func (r *memberRun) export(ctx context.Context, count int) (f figure.Figure, err error) {
	f = figure.Figure{
		What: fmt.Sprintf("%s services of ten endpoints exported there → all imported here, and all answered here", thousands(count)),
		Goal: "≤ 30 s",
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
			err := r.awaitAnswers(ctx, first, len(r.exports.Services), func(reply *dns.Msg) bool { return len(reply.Answer) == objects.PerSlice })
			answered = time.Since(began)
			return err
		})
		return group.Wait()
	})
	if err != nil {
		return f, err
	}
	_, eastPeak, err := r.eastController.Memory()
	if err != nil {
		return f, err
	}
	_, westPeak, err := r.westController.Memory()
	if err != nil {
		return f, err
	}
	f.Measured = fmt.Sprintf("imported in %s, answered in %s (processor time of the controllers: here %s, there %s; most memory resident: %s, %s)",
		figure.Time(float64(imported)), figure.Time(float64(answered)), figure.Time(float64(used[1])), figure.Time(float64(used[0])),
		figure.Bytes(westPeak), figure.Bytes(eastPeak))
	f.Verdict = figure.Judge(max(imported, answered) <= 30*time.Second)
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

// controllerSizes are the memory of the controllers, in their order.
type controllerSizes struct{ heap, resident [2]float64 }

func (r *memberRun) sizes(ctx context.Context) (s controllerSizes, err error) {
	for i, p := range r.controllers() {
		if s.heap[i], err = p.LiveHeap(ctx); err != nil {
			return s, err
		}
		if s.resident[i], _, err = p.Memory(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// atRest measures controllers while nothing changes.
func (r *memberRun) atRest(ctx context.Context) (figure.Figure, error) {
	f := figure.Figure{What: "processor time of the controllers at rest"}
	r.say("%s", f.What)
	used, err := usedBy(r.controllers(), func() error { return pause(ctx, r.rest) })
	if err != nil {
		return f, err
	}
	part := func(used time.Duration) float64 { return 100 * float64(used) / float64(r.rest) }
	f.Measured = fmt.Sprintf("%.2f %% of a core here, %.2f %% there, with %s services exported", part(used[1]), part(used[0]), thousands(len(r.exports.Services)))
	return f, nil
}

// changeRate is how many changes are made in a second to see what they cost.
const changeRate = 50

// changeCost is the processor time of the controllers per change, in nanoseconds for each round.
func (r *memberRun) changeCost(ctx context.Context) (costs [2][]float64, err error) {
	r.say("processor time of the controllers per change, among %d services", len(r.exports.Services))
	for range min(r.rounds, 5) {
		idle, err := usedBy(r.controllers(), func() error { return pause(ctx, r.updateTime/2) })
		if err != nil {
			return costs, err
		}
		began := time.Now()
		count := int(r.updateTime.Seconds() * changeRate)
		used, err := usedBy(r.controllers(), func() error {
			// The first services, so that the changes are the same however many there are besides.
			if _, err := r.east.writer.Stream(ctx, &r.exports.Set, r.exports.Slices[:r.fewExports], changeRate, count); err != nil {
				return err
			}
			address := r.exports.NextAddress().String()
			if _, err := r.east.writer.Move(ctx, r.exports.Slices[0], address); err != nil {
				return err
			}
			return r.awaitAnswers(ctx, 0, 1, wire.HasAddress(address))
		})
		if err != nil {
			return costs, err
		}
		lasted := float64(time.Since(began)) / float64(r.updateTime/2)
		for i := range used {
			costs[i] = append(costs[i], (float64(used[i])-float64(idle[i])*lasted)/float64(count+1))
		}
	}
	return costs, nil
}

// follow makes changes of one endpoint, an interval apart, and measures when they are answered.
func (r *memberRun) follow(ctx context.Context, interval time.Duration, count int) (figure.Figure, error) {
	f := figure.Figure{
		What: fmt.Sprintf("endpoint patched there → answer changed here, changes %d ms apart", interval.Milliseconds()),
		Goal: "p50 ≤ 20 ms, p99 ≤ 50 ms",
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
	name := "db-0.east." + r.exports.Name(r.exports.Services[0].Name)
	var writes, late []time.Duration
	for range count {
		<-ticker.C
		address, began := r.exports.NextAddress().String(), time.Now()
		written, err := r.east.writer.Move(ctx, r.exports.Slices[0], address)
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
	f.Measured = fmt.Sprintf("p50 %s, p99 %s (%d changes; the write there takes p50 %s, p99 %s of it)",
		figure.Time(float64(p50)), figure.Time(float64(p99)), count,
		figure.Time(float64(figure.Quantile(writes, 0.5))), figure.Time(float64(figure.Quantile(writes, 0.99))))
	f.Verdict = figure.Judge(p50 <= 20*time.Millisecond, p99 <= 50*time.Millisecond)
	return f, nil
}

// withdraw takes exports back and measures when nothing of them is left anywhere.
func (r *memberRun) withdraw(ctx context.Context) (figure.Figure, error) {
	f := figure.Figure{What: fmt.Sprintf("%d exports withdrawn there → gone everywhere, and no longer answered here", r.withdrawn), Goal: "≤ 2 s"}
	r.say("%s", f.What)
	total := len(r.exports.Services)
	remaining := total - r.withdrawn
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.east.writer.Withdraw(ctx, r.exports.Services[remaining:]) })
	for _, p := range []*plane{r.east, r.west} {
		group.Go(func() error { return p.writer.AwaitImports(ctx, namespace, remaining) })
	}
	group.Go(func() error {
		return r.awaitAnswers(ctx, remaining, total, func(reply *dns.Msg) bool { return reply.Rcode == dns.RcodeNameError })
	})
	if err := group.Wait(); err != nil {
		return f, err
	}
	took := time.Since(began)
	f.Measured = figure.Time(float64(took))
	f.Verdict = figure.Judge(took <= 2*time.Second)
	return f, nil
}
