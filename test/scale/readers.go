// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
)

// writesPerReading is how many writes of a kind are measured.
const writesPerReading = 60

// readers measures what the controllers of the other clusters cost the own API server.
func readers(ctx context.Context, b *bed) (err error) {
	if err := b.kill(); err != nil {
		return err
	}
	writes, err := b.newWrites(ctx)
	if err != nil {
		return err
	}
	before, err := b.serverHeap(ctx)
	if err != nil {
		return err
	}
	alone := &crowd{}
	var alones [3]time.Duration
	for i, write := range writes {
		if alones[i], _, err = b.cost(ctx, alone, b.repeat(write)); err != nil {
			return err
		}
	}
	c, err := b.crowd(ctx, b.readers)
	if err != nil {
		return err
	}
	defer c.leave()
	after, err := b.serverHeap(ctx)
	if err != nil {
		return err
	}
	var each [3]float64
	var received [3]float64
	for i, write := range writes {
		cpu, bytes, err := b.cost(ctx, c, b.repeat(write))
		if err != nil {
			return err
		}
		each[i] = float64(cpu-alones[i]) / float64(writesPerReading*b.readers)
		received[i] = float64(bytes) / float64(writesPerReading*b.readers)
	}
	const lists = 20
	listing, _, err := b.cost(ctx, c, func() error {
		for range lists {
			if err := c.list(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices, err := b.countSlices(ctx)
	if err != nil {
		return err
	}
	b.add(
		figure.Figure{
			What:  fmt.Sprintf("%d readers at a real API server: its memory per reader", b.readers),
			Cells: cell("%s", figure.Bytes((after-before)/float64(b.readers))),
		},
		figure.Figure{
			What:  "its processor time per reader: renewed heartbeat, changed published slice, any other slice",
			Cells: cell("%s, %s, %s", figure.Time(each[0]), figure.Time(each[1]), figure.Time(each[2])),
		},
		figure.Figure{
			What:  "received per reader: renewed heartbeat, changed published slice",
			Cells: cell("%s, %s", figure.Bytes(received[0]), figure.Bytes(received[1])),
		},
		figure.Figure{
			What:  fmt.Sprintf("its processor time per list of one published slice among %s", thousands(slices)),
			Cells: cell("%s", figure.Time(float64(listing)/lists)),
		},
		figure.Figure{
			What:  "its processor time, with etcd's, per write of a slice that nobody reads",
			Cells: cell("%s", figure.Time(float64(alones[1])/writesPerReading)),
		})
	return nil
}

// repeat does something as often as is measured, slowly enough that nothing piles up.
func (b *bed) repeat(do func() error) func() error {
	return func() error {
		ticker := time.NewTicker(b.rest / 1200)
		defer ticker.Stop()
		for range writesPerReading {
			if err := do(); err != nil {
				return err
			}
			<-ticker.C
		}
		return nil
	}
}

// newWrites makes the objects that are read, and returns what writes them: the heartbeat, a published slice, and one
// that is not.
func (b *bed) newWrites(ctx context.Context) ([3]func() error, error) {
	leases := b.plane.Client().CoordinationV1().Leases(member.DefaultNamespace)
	var writes [3]func() error
	holder := readCluster
	lease, err := leases.Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
	if err != nil {
		return writes, err // the controller has made it
	}
	writes[0] = func() error {
		now := metav1.NowMicro()
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now}
		var err error
		lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	}
	for i, cluster := range []string{readCluster, "another"} {
		published, err := b.fleet.Published(cluster)
		if err != nil {
			return writes, err
		}
		published.Name += "-" + cluster
		published.OwnerReferences = nil
		published.Labels[export.LabelSliceManagedBy] = "scale.clusterset-dns.github.io" // no controller looks at it
		slices := b.plane.Client().DiscoveryV1().EndpointSlices(published.Namespace)
		slice, err := slices.Create(ctx, published, metav1.CreateOptions{})
		if err != nil {
			return writes, err
		}
		ready := true
		writes[i+1] = func() error {
			ready = !ready
			slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: &ready}
			updated, err := slices.Update(ctx, slice, metav1.UpdateOptions{})
			if err == nil {
				slice = updated
			}
			return err
		}
	}
	return writes, errors.Join(b.pause(ctx, time.Second))
}
