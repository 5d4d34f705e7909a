// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/miekg/dns"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

const reconcilesText = `
Processor time of a controller with 200 members for one endpoint that changes in one of them, with
the writes to its own real API server. Another API server represents all members.`

// reconcileSizes are the numbers of clusters and of endpoints in all.
var reconcileSizes = [][2]int{{2, 10}, {20, 1000}, {200, 10_000}}

// reconcileRun is what the measurements of services of many clusters share.
type reconcileRun struct {
	*bench
	far, west  *plane
	controller *servers.Process
	dns        *servers.Server
	addresses  *objects.Set
}

// reconciles measures a controller with many members.
func reconciles(ctx context.Context, b *bench) (table figure.Table, err error) {
	table = figure.Table{Title: "Reconciles", Text: reconcilesText, Columns: []string{"measured"}}
	r := &reconcileRun{bench: b, addresses: &objects.Set{}}
	if r.far, err = startPlane(ctx, "far"); err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, r.far.Stop()) }()
	if r.west, err = startPlane(ctx, "west"); err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, r.west.Stop()) }()
	stop, err := r.start(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return table, err
	}
	for _, size := range reconcileSizes {
		if size[0] > b.members || b.quick && size[1] > 1000 {
			continue
		}
		f, err := r.measure(ctx, size[0], size[1])
		if err != nil {
			return table, fmt.Errorf("%s: %w", f.What, err)
		}
		table.Figures = append(table.Figures, f)
	}
	return table, nil
}

// start starts the controller and a server in west, and the heartbeats of far.
func (r *reconcileRun) start(ctx context.Context) (stop func() error, err error) {
	beating, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.beat(beating) }()
	stop = func() error {
		cancel()
		errs := []error{<-ended, r.controller.End()}
		if r.dns != nil {
			errs = append(errs, r.dns.End())
		}
		return errors.Join(errs...)
	}
	for _, p := range []*plane{r.far, r.west} {
		if err := errors.Join(clusterset.Install(ctx, p.Cluster), p.writer.Namespace(ctx, namespace)); err != nil {
			return stop, err
		}
	}
	var ids []string
	for i := range r.members {
		ids = append(ids, fmt.Sprintf("member-%d", i))
	}
	if err := r.west.read(ctx, r.far, ids...); err != nil {
		return stop, err
	}
	if r.controller, err = r.startController(ctx, r.west); err != nil {
		return stop, err
	}
	r.dns, err = r.startServer(ctx, servers.AnyCore, servers.Ours, r.west.kubeconfig)
	return stop, err
}

// beat renews the heartbeat of far, as a controller there would, until the context ends.
func (r *reconcileRun) beat(ctx context.Context) error {
	if err := r.far.writer.Namespace(ctx, member.DefaultNamespace); err != nil {
		return err
	}
	leases := r.far.Client().CoordinationV1().Leases(member.DefaultNamespace)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: member.HeartbeatLease}}
	lease, err := leases.Create(ctx, lease, metav1.CreateOptions{})
	ticker := time.NewTicker(member.HeartbeatInterval)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
			lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("renew the heartbeat: %w", err)
}

// changesPerRound is how many changes of a service are made in a round.
const changesPerRound = 10

// measure exports a service of one size from far and measures changes of it.
func (r *reconcileRun) measure(ctx context.Context, clusters, endpoints int) (figure.Figure, error) {
	f := figure.Figure{What: fmt.Sprintf("service of %d clusters and %s endpoints", clusters, thousands(endpoints))}
	r.say("reconcile of %s", f.What)
	name := types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("db-%d-%d", clusters, endpoints)}
	all, err := publishAll(name, clusters, endpoints, r.addresses)
	if err != nil {
		return f, err
	}
	set := &objects.Set{Namespace: namespace, Slices: all}
	for _, slice := range set.Slices {
		slice.OwnerReferences = nil // the ServiceExports of the members are not there
	}
	if err := r.far.writer.Create(ctx, set, 0, 0); err != nil {
		return f, err
	}
	client, err := wire.Dial(ctx, r.dns.Address)
	if err != nil {
		return f, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	broken := func() error { return errors.Join(r.controller.Err(), r.dns.Err()) }
	first := set.Slices[slices.IndexFunc(set.Slices,
		func(slice *discoveryv1.EndpointSlice) bool { return len(slice.Endpoints) > 0 })]
	host := fmt.Sprintf("%s.%s.%s.%s.svc.clusterset.local.", *first.Endpoints[0].Hostname,
		first.Labels[mcsv1beta1.LabelSourceCluster], name.Name, namespace)
	change := func() error {
		address := r.addresses.NextAddress().String()
		if err := r.far.writer.Move(ctx, first, address); err != nil {
			return err
		}
		return client.Await(ctx, host, dns.TypeA, time.Millisecond, wire.HasAddress(address), broken)
	}
	// Once all clusters' endpoints are imported, nothing is under way.
	if err := r.far.awaitSame(ctx, r.west, name, len(set.Slices)); err != nil {
		return f, err
	}
	if err := change(); err != nil {
		return f, err
	}
	var costs []float64
	for range min(r.rounds, 5) {
		idle, err := usedBy([]*servers.Process{r.controller}, func() error { return pause(ctx, r.rest) })
		if err != nil {
			return f, err
		}
		began := time.Now()
		used, err := usedBy([]*servers.Process{r.controller}, func() error {
			for range changesPerRound {
				if err := change(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return f, err
		}
		lasted := float64(time.Since(began)) / float64(r.rest)
		costs = append(costs, (float64(used[0])-float64(idle[0])*lasted)/changesPerRound)
	}
	f.Cells = cell("%s", figure.Time(figure.Median(costs)))
	return f, nil
}

// awaitSame returns when the other cluster has as many slices of the service as were written to this one.
func (p *plane) awaitSame(ctx context.Context, other *plane, name types.NamespacedName, count int) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		have, err := other.writer.CountSlices(ctx, name)
		if err != nil {
			return err
		}
		if have >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d slices of %s are imported: %w", have, count, name, ctx.Err())
		case <-ticker.C:
		}
	}
}
