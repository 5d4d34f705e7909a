// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
)

// exportsNamespace is that of the services that the cluster under test exports.
const exportsNamespace = "scale-own"

// export has the cluster under test export some services of one slice each.
func (b *bed) export(ctx context.Context) error {
	writer, err := objects.NewWriter(b.plane.Config())
	if err != nil {
		return err
	}
	own := &objects.Exports{Set: objects.Set{Namespace: exportsNamespace}}
	for range b.exports {
		own.Headless(objects.PerSlice)
	}
	if err := writer.CreateServices(ctx, own, 0, 0); err != nil {
		return err
	}
	return writer.Export(ctx, own.Services)
}

// failover measures two replicas of the controller, of which the leader is killed.
func failover(ctx context.Context, b *bed) error {
	if err := b.kill(); err != nil {
		return err
	}
	if err := b.export(ctx); err != nil {
		return err
	}
	if err := b.run("--leader-elect"); err != nil {
		return err
	}
	complete := func(s samples) bool { return s.synced() == b.shape.Members && s.idle() }
	if err := b.await(ctx, "the leader is complete", complete); err != nil {
		return err
	}
	first := b.controller
	defer func() { _ = first.End() }()
	if err := b.run("--leader-elect"); err != nil {
		return err
	}
	if err := b.await(ctx, "the other replica is ready", func(samples) bool { return b.ready(ctx) }); err != nil {
		return err
	}
	if err := b.pause(ctx, b.rest/6); err != nil {
		return err
	}
	heap, err := b.controller.LiveHeap(ctx)
	if err != nil {
		return err
	}
	before, err := b.controller.CPU()
	if err != nil {
		return err
	}
	if err := b.pause(ctx, b.rest); err != nil {
		return err
	}
	after, err := b.controller.CPU()
	if err != nil {
		return err
	}
	resident, _, err := b.controller.Memory()
	if err != nil {
		return err
	}
	changes, err := b.fleet.ChangeEach(ctx)
	if err != nil {
		return err
	}
	if err := b.allAnswered(ctx, changes); err != nil {
		return err
	}

	leases, err := b.plane.Client().CoordinationV1().Leases(member.DefaultNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer leases.Stop()
	if err := first.End(); err != nil {
		return err
	}
	killed := time.Now()
	if changes, err = b.fleet.ChangeEach(ctx); err != nil {
		return err
	}
	var led, beat time.Duration
	u, err := b.during(ctx, func() (err error) {
		if led, beat, err = takeover(ctx, leases, killed); err != nil {
			return err
		}
		return errors.Join(b.allAnswered(ctx, changes), b.await(ctx, "the new leader is complete", complete))
	})
	if err != nil {
		return err
	}
	took := u.at.Sub(killed)
	what := fmt.Sprintf("leader killed, %s services exported here", thousands(b.exports))
	b.add(
		figure.Figure{
			What: what + " → first heartbeat of the other replica", Goal: "≤ 30 s",
			Cells:   cell("%s, %s after it took the Lease", figure.Time(float64(beat)), figure.Time(float64(beat-led))),
			Verdict: figure.Judge(beat <= 30*time.Second),
		},
		figure.Figure{
			What: what + " → complete, with what changed meanwhile",
			Cells: cell("%s, %s after it took the Lease; %s writes", figure.Time(float64(took)),
				figure.Time(float64(took-led)), thousands(int(u.writes))),
		},
		figure.Figure{
			What: "replica that stands by: live heap, RSS, processor time",
			Cells: cell("%s, %s, %.2f %% of a core", figure.Bytes(heap), figure.Bytes(resident),
				100*float64(after-before)/float64(b.rest)),
		})
	return nil
}

// ready reports whether the controller says that it is.
func (b *bed) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.controller.address+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// takeover returns after how long another replica took the Lease, and renewed the heartbeat.
func takeover(ctx context.Context, leases watch.Interface, killed time.Time) (led, beat time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	former := ""
	for {
		var lease *coordinationv1.Lease
		select {
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("wait for another leader: %w", ctx.Err())
		case event, open := <-leases.ResultChan():
			if !open {
				return 0, 0, errors.New("the watch of the Leases ended")
			}
			lease, _ = event.Object.(*coordinationv1.Lease)
		}
		switch {
		case lease == nil || lease.Spec.HolderIdentity == nil:
		case lease.Name == controller.LeaderLease && former == "":
			former = *lease.Spec.HolderIdentity
		case lease.Name == controller.LeaderLease && led == 0 && *lease.Spec.HolderIdentity != former:
			led = time.Since(killed)
		case lease.Name == member.HeartbeatLease && led > 0:
			return led, time.Since(killed), nil
		}
	}
}
