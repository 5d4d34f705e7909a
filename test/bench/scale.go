// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
)

// The figures with a floor.
const (
	whatImport    = "start → everything imported that was not before"
	whatMedian    = "change → answer, median"
	whatTail      = "change → answer, 99 %"
	whatPerChange = "processor time of the controller for each change"
)

// cpu returns the processor time that a process has used in all its threads, even in those that have ended.
func cpu(pid int) (time.Duration, error) {
	var used unix.Timespec
	// The clock of a process: the kernel's MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
	if err := unix.ClockGettime(int32(^pid<<3|2), &used); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(used.Nano()), nil
}

// during returns how long do takes, and the processor time that a process uses meanwhile.
func during(pid int, do func() error) (took, used time.Duration, err error) {
	before, err := cpu(pid)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	after, err := cpu(pid)
	return took, after - before, err
}

// peak returns the greatest resident memory of a process, in MiB.
func peak(pid int) (float64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := process.NewStatus()
	return float64(status.VmHWM) / (1 << 20), err
}

// collected matches the live heap in MiB after a garbage collection, as GODEBUG=gctrace=1 prints it.
var collected = regexp.MustCompile(`(?m)^gc .*->(\d+) MB, `)

// liveHeap returns the live heap of a cluster's program after its last garbage collection, in bytes; 0 before the first.
func (c *cluster) liveHeap(program string) (float64, error) {
	log, err := os.ReadFile(filepath.Join(c.Directory(), program+".log"))
	if err != nil {
		return 0, err
	}
	all := collected.FindAllSubmatch(log, -1)
	if len(all) == 0 {
		return 0, nil
	}
	live, err := strconv.Atoi(string(all[len(all)-1][1]))
	return float64(live) * (1 << 20), err
}

// members measures the heap of a controller whose members export nothing yet.
func (b *bed) members(ctx context.Context) error {
	b.say("members")
	if err := b.run(ctx, b.local()); err != nil {
		return err
	}
	err := errors.Join(b.idle(ctx, nil), b.pause(ctx, b.rest/3))
	if err == nil {
		b.baseHeap, err = b.local().liveHeap(controllerProgram)
	}
	return errors.Join(err, kill(&b.local().controller))
}

// heaps measures the memory per endpoint: in the controller without the memory for members, and in CoreDNS.
func (b *bed) heaps() error {
	controller, err := b.local().liveHeap(controllerProgram)
	if err != nil {
		return err
	}
	server, err := b.local().liveHeap(serverProgram)
	if err != nil {
		return err
	}
	count, limit := float64(b.shape.Endpoints), 400.0
	if b.shape.Part() >= fleet.PerSlice {
		limit = 150
	}
	controller, server = (controller-b.baseHeap)/count, server/count
	b.add(&figure{
		what: "live heap for each endpoint", goal: fmt.Sprintf("≤ %.0f B, DNS ≤ 90 B", limit), missed: controller > limit || server > 90,
		measured: fmt.Sprintf("controller %.0f B, DNS %.0f B", controller, server),
	})
	return nil
}

// imports measures the first start with all exports, before anything is imported.
func (b *bed) imports(ctx context.Context) error {
	b.say("import")
	if err := b.fleet.Export(ctx); err != nil {
		return err
	}
	own, err := b.countSlices(ctx)
	if err != nil {
		return err
	}
	began, imported := time.Now(), 0
	if err := b.run(ctx, b.local()); err != nil {
		return err
	}
	if err := b.idle(ctx, func() (bool, error) {
		count, err := b.countSlices(ctx)
		imported = count - own
		return imported == b.shape.Slices(), err
	}); err != nil {
		return fmt.Errorf("%w; %d of %d slices are imported", err, imported, b.shape.Slices())
	}
	took := time.Since(began)
	held, err := peak(b.local().controller.PID())
	if err != nil {
		return err
	}
	used, err := cpu(b.local().controller.PID())
	b.add(&figure{
		what: whatImport, goal: "≤ 60 s, RSS ≤ 512 MiB at any moment", value: float64(took),
		measured: fmt.Sprintf("%s; RSS ≤ %.0f MiB; processor time of the controller %s", inUnits(float64(took)), held, inUnits(float64(used))),
		missed:   took > time.Minute || held > memory,
	})
	return err
}

// countSlices returns the number of EndpointSlices in the local cluster.
func (b *bed) countSlices(ctx context.Context) (int, error) {
	list, err := b.local().Client().DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	count := len(list.Items)
	if list.RemainingItemCount != nil {
		count += int(*list.RemainingItemCount)
	}
	return count, nil
}

// atRest measures the processor time and memory while nothing changes.
func (b *bed) atRest(ctx context.Context) error {
	b.say("rest")
	// Wait until the effects of the import, above all garbage, are gone.
	if err := b.pause(ctx, b.rest/6); err != nil {
		return err
	}
	took, used, err := during(b.local().controller.PID(), func() error { return b.pause(ctx, b.rest) })
	part := 100 * float64(used) / float64(took)
	b.add(&figure{
		what: "processor time of the controller at rest", goal: "≤ 3 % of a core", measured: fmt.Sprintf("%.2f %%", part), missed: part > 3,
	})
	return errors.Join(err, b.heaps())
}

// stream measures a stream of changes.
func (b *bed) stream(ctx context.Context) error {
	b.say("changes")
	if err := errors.Join(b.idle(ctx, nil), b.pause(ctx, b.rest/6)); err != nil {
		return err
	}
	followed := &follower{bed: b}
	followed.SetLimit(500)
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	count, controller := 0, b.local().controller.PID()
	took, used, err := during(controller, func() (err error) {
		count, err = b.changeEndpoints(following, followed)
		return err
	})
	if err != nil {
		return err
	}
	began := time.Now()
	late := time.AfterFunc(lastAnswer, cancel)
	defer late.Stop()
	if err := followed.Wait(); err != nil {
		return err
	}
	lag := time.Since(began)
	p99 := quantile(followed.took, 0.99)
	b.add(&figure{what: whatMedian, value: quantile(followed.took, 0.5)})
	b.add(&figure{
		what: whatTail, goal: "all answered", value: p99,
		measured: fmt.Sprintf("%s (%d of %d changes followed; %d unanswered after %s; the last one after %s)", inUnits(p99),
			len(followed.took), count, followed.unanswered, lastAnswer, inUnits(float64(lag))),
		missed: followed.unanswered > 0,
	})
	held, err := peak(controller)
	each := float64(used) / float64(count)
	b.add(&figure{
		what: whatPerChange, goal: "≤ 1 core", value: each, missed: used > took,
		measured: fmt.Sprintf("%s; %.0f %% of a core; RSS ≤ %.0f MiB", inUnits(each), 100*float64(used)/float64(took), held),
	})
	return errors.Join(err, b.idle(ctx, nil))
}

// lastAnswer is the time limit for answers after the last change.
const lastAnswer = time.Minute

// changeEndpoints makes changes at the rate, for the time changes, and follows some of them. It returns the number of changes.
func (b *bed) changeEndpoints(ctx context.Context, followed *follower) (count int, err error) {
	const perSecond = 20 // followed changes
	credit := 0
	err = fleet.Every(ctx, time.Second/time.Duration(b.rate), b.changes, func() error {
		change, err := b.fleet.Change(ctx)
		count++
		if credit += perSecond; err == nil && credit >= b.rate && change.Host != "" {
			credit -= b.rate
			followed.follow(ctx, change)
		}
		return err
	})
	return count, err
}

// follower measures the time until changes are answered, many in parallel.
type follower struct {
	errgroup.Group // with a limit, because queries use processor time, too
	bed            *bed

	mu   sync.Mutex
	took []time.Duration
	// unanswered is the number of changes that exceeded the limit of parallel queries, or were not answered in time.
	unanswered int
}

// follow starts to follow a change.
func (f *follower) follow(ctx context.Context, change fleet.Change) {
	if f.TryGo(func() error {
		// The interval between two queries is a twentieth of the time since the change, so a slow answer costs few
		// queries and is measured to within 5 %.
		err := ask(ctx, f.bed.local().dns.Address, change.Host,
			func() time.Duration { return max(time.Millisecond, time.Since(change.At)/20) },
			func(addresses []netip.Addr) bool { return slices.ContainsFunc(addresses, change.Answers) }, f.bed.broken)
		took := time.Since(change.At)
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
			f.unanswered++
			return nil
		case err == nil:
			f.took = append(f.took, took)
		}
		return err
	}) {
		return
	}
	f.mu.Lock()
	f.unanswered++
	f.mu.Unlock()
}
