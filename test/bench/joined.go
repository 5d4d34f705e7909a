// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

const joinedText = `
Two real control planes that are members of each other, on one machine, with a controller in each,
and our CoreDNS in the importing one. Services are headless with ten endpoints. A change gives an
endpoint another address; its time lasts from the request there to the first answer here. One
service changes every 50 ms. Floors are plain clients that send the same requests, in turns with the
controllers for changes, and once the controllers have ended for exports.`

const (
	namespace = "shop"
	// endpoints is the number of endpoints per service.
	endpoints = 10
	// interval is the time between two changes. A service that changes more often than ten times a second has to wait
	// for its next reconcile, which is not measured here.
	interval = 50 * time.Millisecond
	// turns is how often the controllers and then the plain clients follow changes.
	turns = 3
	// parallel is the number of concurrent requests.
	parallel = 48
)

// A pair is two clusters: east exports, and west imports. West is the cluster under test.
type pair struct {
	*bed
	west, east *cluster
	services   []*corev1.Service
	slices     []*discoveryv1.EndpointSlice // one per service
	addresses  uint32
}

// joinedClusters measures two joined clusters.
func (b *bed) joinedClusters(ctx context.Context) error {
	if err := b.startClusters(ctx, "west", "east"); err != nil {
		return err
	}
	p := &pair{bed: b, west: b.clusters[0], east: b.clusters[1]}
	if err := p.start(ctx); err != nil {
		return err
	}
	exported, err := p.export(ctx)
	if err != nil {
		return err
	}
	changed, relayed, err := p.inTurns(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(kill(&p.west.controller), kill(&p.east.controller)); err != nil {
		return err
	}
	copied, err := p.copied(ctx)
	if err != nil {
		return err
	}
	b.add(&figure{what: fmt.Sprintf("%d exports → imported and answered", b.exports), value: float64(exported)}).
		compare(float64(copied), ratio(1.3))
	b.add(&figure{what: "one change: p50", value: quantile(changed, 0.5)}).
		compare(quantile(relayed, 0.5), later(5*time.Millisecond))
	b.add(&figure{what: "one change: p99", value: quantile(changed, 0.99)}).
		compare(quantile(relayed, 0.99), later(10*time.Millisecond))
	return nil
}

// start makes the clusters members of each other, and starts the programs.
func (p *pair) start(ctx context.Context) error {
	for _, each := range [][2]*cluster{{p.west, p.east}, {p.east, p.west}} {
		reader, source := each[0], each[1]
		credential, err := source.ServiceAccountKubeconfig(ctx, clusterset.Namespace, "clusterset-member")
		if err != nil {
			return err
		}
		if err := errors.Join(reader.Join(ctx, source.Name(), credential),
			reader.objects.Namespaces(ctx, namespace), p.run(ctx, reader)); err != nil {
			return err
		}
		if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, reader.controller.Ready); err != nil {
			return err
		}
	}
	return p.serve(p.west)
}

// export exports services in east, and returns the time until west answers for all of them.
func (p *pair) export(ctx context.Context) (time.Duration, error) {
	p.say("%d exports", p.exports)
	for i := range p.exports {
		service := fleet.NewService(namespace, fmt.Sprintf("db-%d", i), true)
		p.services = append(p.services, service)
		p.slices = append(p.slices, fleet.Slices(service, "east", p.addresses, endpoints)...)
		p.addresses += endpoints
	}
	if err := p.each(ctx, func(ctx context.Context, i int) error {
		_, err1 := p.east.objects.CoreV1().Services(namespace).Create(ctx, p.services[i], metav1.CreateOptions{})
		_, err2 := p.east.objects.DiscoveryV1().EndpointSlices(namespace).Create(ctx, p.slices[i], metav1.CreateOptions{})
		return errors.Join(err1, err2)
	}); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	group, all := errgroup.WithContext(ctx)
	group.Go(func() error {
		return p.each(all, func(ctx context.Context, i int) error {
			_, err := p.east.objects.MCS.MulticlusterV1beta1().ServiceExports(namespace).Create(ctx,
				&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: p.services[i].Name}}, metav1.CreateOptions{})
			return err
		})
	})
	group.Go(func() error {
		for i := range p.services {
			if err := p.answers(all, p.name(i), 2*time.Millisecond,
				func(addresses []netip.Addr) bool { return len(addresses) == endpoints }); err != nil {
				return err
			}
		}
		return nil
	})
	err := group.Wait()
	return time.Since(began), err
}

// each calls do for each service, with many calls in parallel.
func (p *pair) each(ctx context.Context, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range p.services {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// name returns the name of a service in DNS.
func (p *pair) name(service int) string {
	return fmt.Sprintf("%s.%s.svc.clusterset.local.", p.services[service].Name, namespace)
}

// answers waits until west answers as wanted.
func (p *pair) answers(ctx context.Context, name string, interval time.Duration, wanted func([]netip.Addr) bool) error {
	return ask(ctx, p.west.dns.Address, name, every(interval), wanted, p.broken)
}

// inTurns follows changes that the controllers propagate, and as many that plain clients propagate while the
// controllers are frozen.
func (p *pair) inTurns(ctx context.Context) (ours, floor []time.Duration, err error) {
	for range turns {
		took, err := p.follow(ctx)
		if err != nil {
			return nil, nil, err
		}
		ours = append(ours, took...)
		// The controllers are frozen for less than 30 s, so they do not become stale.
		if err := errors.Join(p.east.controller.Freeze(), p.west.controller.Freeze()); err != nil {
			return nil, nil, err
		}
		took, err = p.relayed(ctx)
		if err := errors.Join(err, p.east.controller.Thaw(), p.west.controller.Thaw()); err != nil {
			return nil, nil, err
		}
		floor = append(floor, took...)
		if err := p.pause(ctx, time.Second); err != nil { // the controllers catch up
			return nil, nil, err
		}
	}
	return ours, floor, nil
}

// follow changes one endpoint of each service in turn, an interval apart, and measures the time until each change is answered.
func (p *pair) follow(ctx context.Context) (took []time.Duration, err error) {
	count := p.followed / turns
	p.say("%d changes, one every %s", count, interval)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(count)*interval+time.Minute)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for i := range count {
		<-ticker.C
		i %= len(p.slices)
		p.addresses++
		address, began := fleet.Address(p.addresses), time.Now()
		if err := p.east.objects.Move(ctx, p.slices[i], corev1.EndpointsLastChangeTriggerTime, address); err != nil {
			return nil, err
		}
		// Propagation takes longer than the API server's response, so the queries can start after it.
		if err := p.answers(ctx, fleet.Host(0)+".east."+p.name(i), 200*time.Microsecond,
			func(addresses []netip.Addr) bool { return slices.Contains(addresses, address) }); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// relayed follows changes that two plain clients propagate: from the slice of the Service to the published slice, and
// from there to the copy. The clients know the slices in advance.
func (p *pair) relayed(ctx context.Context) (took []time.Duration, err error) {
	p.say("floor of changes")
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	defer func() { err = errors.Join(err, group.Wait()) }()
	defer cancel()
	for label, to := range map[string]*cluster{discoveryv1.LabelServiceName: p.east, mcsv1beta1.LabelServiceName: p.west} {
		follow, err := relay(ctx, p.east.objects, namespace, label, to.objects)
		if err != nil {
			return nil, err
		}
		group.Go(follow)
	}
	return p.follow(ctx)
}

// copied returns the least time for writing copies of all objects of the users and the controllers in both clusters,
// for the best of several numbers of parallel services.
func (p *pair) copied(ctx context.Context) (least time.Duration, err error) {
	all := make([][]*made, len(p.clusters))
	for i, c := range p.clusters {
		if all[i], err = madeIn(ctx, c.objects); err != nil {
			return 0, err
		}
	}
	for _, atOnce := range []int{4, 8, 16, 32} {
		prefix := fmt.Sprintf("floor-%d-", atOnce)
		for _, c := range p.clusters {
			if err := c.objects.Namespaces(ctx, prefix+namespace); err != nil {
				return 0, err
			}
		}
		began := time.Now()
		var writes errgroup.Group
		for i, c := range p.clusters {
			writes.Go(func() error { return copyAll(ctx, c.objects, all[i], prefix, atOnce) })
		}
		err := writes.Wait()
		took := time.Since(began)
		if p.say("floor of exports: %d at a time take %s", atOnce, inUnits(float64(took))); err != nil {
			return 0, err
		}
		if least == 0 || took < least {
			least = took
		}
	}
	return least, nil
}
