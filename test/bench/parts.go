// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/usage"
)

// What has a floor.
const (
	whatImport    = "start → everything imported that was not before"
	whatRest      = "processor time of the controller at rest"
	whatMedian    = "change → answer, median"
	whatTail      = "change → answer, 99 %"
	whatPerChange = "processor time of the controller for each change"
)

// members measures a controller whose members export nothing yet.
func members(ctx context.Context, b *bed) error {
	u, err := b.during(ctx, func() error {
		if err := b.run(b.local(), b.memory<<20/10*9); err != nil {
			return err
		}
		return b.await(ctx, "all members are synced", func(s samples) bool { return s.synced() == b.shape.Members })
	})
	if err != nil {
		return err
	}
	if err := b.pause(ctx, b.rest/6); err != nil {
		return err
	}
	if b.baseHeap, err = usage.LiveHeap(ctx, b.local().controller.debug); err != nil {
		return err
	}
	b.add(&figure.Figure{
		What: "start with members that export nothing → all synced",
		Measured: fmt.Sprintf("%s, with %s of processor time; live heap %s", figure.Time(float64(u.took)),
			figure.Time(float64(u.controller)), figure.Bytes(b.baseHeap)),
	})
	return kill(&b.local().controller)
}

// errIncomplete means that limits kept the controller from importing everything.
var errIncomplete = errors.New("not everything is imported")

// imports measures the first start with all exports, of which nothing is imported yet.
func imports(ctx context.Context, b *bed) error {
	if err := b.fleet.Export(ctx); err != nil {
		return err
	}
	own, err := b.countSlices(ctx)
	if err != nil {
		return err
	}
	have, stuck := 0, 0
	u, err := b.during(ctx, func() error {
		if err := b.run(b.local(), b.memory<<20/10*9); err != nil {
			return err
		}
		return b.await(ctx, "everything is imported", func(s samples) bool {
			count, err := b.countSlices(ctx)
			if err != nil || s.synced() < b.shape.Members || !s.idle() {
				stuck = 0
				return false
			}
			if stuck++; count-own != have {
				have, stuck = count-own, 0
			}
			return have == b.shape.Slices() || s.limited() > 0 && stuck >= 15
		})
	})
	if err != nil {
		return fmt.Errorf("%w; %d of %d slices are imported", err, have, b.shape.Slices())
	}
	took := time.Since(b.local().controller.started)
	_, peak, err := usage.Memory(b.local().controller.PID())
	if err != nil {
		return err
	}
	if have != b.shape.Slices() {
		b.add(&figure.Figure{
			What: whatImport, Goal: "≤ 60 s, RSS ≤ 512 MiB at any moment", Verdict: figure.Missed,
			Measured: fmt.Sprintf("%s of %s slices imported; the others exceed limits. RSS ≤ %s", figure.Thousands(have),
				figure.Thousands(b.shape.Slices()), figure.Bytes(peak)),
		})
		return errIncomplete
	}
	b.add(&figure.Figure{
		What: whatImport, Goal: "≤ 60 s, RSS ≤ 512 MiB at any moment", Value: float64(took),
		Measured: fmt.Sprintf("%s; RSS ≤ %s; processor time: controller %s, API server and etcd %s; %s writes",
			figure.Time(float64(took)), figure.Bytes(peak), figure.Time(float64(u.controller)),
			figure.Time(float64(u.server)), figure.Thousands(int(u.writes))),
		Verdict: figure.Judge(took <= time.Minute, peak <= 512<<20),
	})
	return nil
}

// countSlices is the number of EndpointSlices in the local cluster.
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

// atRest measures what is used while nothing changes.
func atRest(ctx context.Context, b *bed) error {
	// What is left of the import, garbage above all, is none of it.
	if err := b.pause(ctx, b.rest/6); err != nil {
		return err
	}
	heap, err := usage.LiveHeap(ctx, b.local().controller.debug)
	if err != nil {
		return err
	}
	u, err := b.during(ctx, func() error { return b.pause(ctx, b.rest) })
	if err != nil {
		return err
	}
	resident, _, err := usage.Memory(b.local().controller.PID())
	if err != nil {
		return err
	}
	dns, _, err := usage.Memory(b.local().dns.PID())
	if err != nil {
		return err
	}
	b.rested = float64(u.controller) / u.took.Seconds()
	each := (heap - b.baseHeap) / float64(b.shape.Endpoints)
	b.add(
		&figure.Figure{
			What: whatRest, Goal: "≤ 3 % of a core", Value: u.part(u.controller),
			Measured: fmt.Sprintf("%.2f %%", u.part(u.controller)),
			Verdict:  figure.Judge(u.part(u.controller) <= 3),
		},
		&figure.Figure{
			What:     "at rest: writes to the own API server",
			Measured: fmt.Sprintf("%.1f/s, %.1f/s of them Leases", u.perSecond(u.writes), u.perSecond(u.leaseWrites)),
		},
		&figure.Figure{
			What: "live heap of the controller per imported endpoint", Goal: "≤ 400 B",
			Measured: fmt.Sprintf("%.0f B", each), Verdict: figure.Judge(each <= 400),
		},
		&figure.Figure{
			What:     "RSS at rest: controller, CoreDNS",
			Measured: fmt.Sprintf("%s, %s", figure.Bytes(resident), figure.Bytes(dns)),
		})
	return nil
}

// changes measures a stream of changes.
func changes(ctx context.Context, b *bed) error {
	if err := errors.Join(b.await(ctx, "no change waits", samples.idle), b.pause(ctx, b.rest/6)); err != nil {
		return err
	}
	followed := &follower{bed: b, places: make(chan struct{}, followedAtOnce)}
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	count := 0
	u, err := b.during(ctx, func() (err error) {
		count, err = b.stream(following, followed, b.rate, b.changes)
		return err
	})
	if err != nil {
		return err
	}
	began := time.Now()
	late := time.AfterFunc(lastAnswer, cancel)
	defer late.Stop()
	followed.group.Wait()
	lag := time.Since(began)
	if followed.err != nil {
		return followed.err
	}
	_, peak, err := usage.Memory(b.local().controller.PID())
	if err != nil {
		return err
	}
	_, dns, err := usage.Memory(b.local().dns.PID())
	if err != nil {
		return err
	}
	p50, p99 := figure.Quantile(followed.took, 0.5), figure.Quantile(followed.took, 0.99)
	each := float64(u.controller) / float64(count)
	b.add(
		&figure.Figure{
			What: whatMedian, Value: float64(p50), Measured: figure.Time(float64(p50)),
		},
		&figure.Figure{
			What: whatTail, Goal: "all answered", Value: float64(p99),
			Measured: fmt.Sprintf("%s (%s of %s changes followed; %d unanswered after %s; the last one after %s)",
				figure.Time(float64(p99)), figure.Thousands(len(followed.took)), figure.Thousands(count), followed.lost+followed.skipped,
				lastAnswer, figure.Time(float64(lag))),
			Verdict: figure.Judge(followed.lost+followed.skipped == 0),
		},
		&figure.Figure{
			What: whatPerChange, Goal: "≤ 1 core", Value: each,
			Measured: fmt.Sprintf("%s, without what rest takes %s; %.0f %% of a core; RSS ≤ %s", figure.Time(each),
				figure.Time(each-b.rested*u.took.Seconds()/float64(count)), u.part(u.controller), figure.Bytes(peak)),
			Verdict: figure.Judge(u.part(u.controller) <= 100),
		},
		&figure.Figure{
			What: "changes: processor time of CoreDNS, of the API server with etcd, of the simulation",
			Measured: fmt.Sprintf("%.0f %%, %.0f %%, %.0f %% of a core; RSS of CoreDNS ≤ %s", u.part(u.dns), u.part(u.server),
				u.part(u.members), figure.Bytes(dns)),
		},
		&figure.Figure{
			What:     "changes: writes to the own API server",
			Measured: fmt.Sprintf("%.0f/s, %.2f per change", u.perSecond(u.writes), (u.writes-u.leaseWrites)/float64(count)),
		})
	return b.await(ctx, "no change waits", samples.idle)
}

// lastAnswer is how long after the last change its answer is waited for.
const lastAnswer = time.Minute
