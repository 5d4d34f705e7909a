// SPDX-License-Identifier: Apache-2.0

// Package fleet simulates the other clusters of a large cluster set, cheaply enough for one machine.
//
// Real: TLS, HTTP/2, one listener and one credential per cluster, and the parts of an API server that
// test/sim/apiserver models (lists in pages, watches, resourceVersions, compaction), which a contract test compares
// with a real API server. The controller's own code makes the published slices.
//
// Simulated: the clusters have no nodes, pods, Services, ServiceExports or etcd. One process answers for all of them,
// over loopback without delay or loss. Only published slices and heartbeats change.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

// A Fleet has all simulated clusters. It is not safe for concurrent use, except for its own heartbeats.
type Fleet struct {
	Shape
	Members []*Member

	places []place
	number uint32

	cancel  context.CancelFunc
	beating errgroup.Group
}

// A place is the first endpoint of a slice, which can change.
type place struct {
	member          *Member
	service         int
	namespace, name string
	first           int // endpoint
}

// Start starts clusters that send heartbeats and export nothing. The caller must call Stop.
func Start(ctx context.Context, shape Shape) (*Fleet, error) {
	f := &Fleet{Shape: shape}
	for i := range shape.Members {
		m, err := newMember(ctx, i, shape.Namespaces())
		if err != nil {
			return nil, errors.Join(err, f.Stop())
		}
		f.Members = append(f.Members, m)
	}
	ctx, f.cancel = context.WithCancel(ctx)
	f.beating.Go(func() error {
		next := 0 // renew them in turn
		return fmt.Errorf("renew heartbeats: %w", Every(ctx, liveness.HeartbeatInterval/time.Duration(len(f.Members)), math.MaxInt64, func() error {
			next++
			return f.Members[next%len(f.Members)].beat(ctx)
		}))
	})
	return f, nil
}

// Stop stops all clusters. It returns the error of the heartbeats. It may be called on nil.
func (f *Fleet) Stop() (err error) {
	if f == nil {
		return nil
	}
	if f.cancel != nil {
		f.cancel()
		if err = f.beating.Wait(); errors.Is(err, context.Canceled) {
			err = nil
		}
	}
	for _, m := range f.Members {
		m.server.CloseClientConnections()
		m.server.Close()
	}
	return err
}

// Every calls do once per interval for the time lasts. It makes up for dropped ticks.
func Every(ctx context.Context, interval, lasts time.Duration, do func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	done := time.Duration(0)
	for began := time.Now(); time.Since(began) < lasts; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		for due := time.Since(began) / interval; done < due; done++ {
			if err := do(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Export makes all members publish their services, and shuffles the changes to a fixed order.
func (f *Fleet) Export(ctx context.Context) error {
	for i, m := range f.Members {
		for _, each := range f.servicesOf(i) {
			slices, err := f.published(m.ID, each[0], each[1])
			if err != nil {
				return err
			}
			for n, slice := range slices {
				slice.OwnerReferences = nil // the model has no ServiceExports
				if _, err := m.client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
					return fmt.Errorf("publish %s of %s: %w", slice.Name, m.ID, err)
				}
				f.places = append(f.places, place{m, each[0], slice.Namespace, slice.Name, n * PerSlice})
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 0))
	random.Shuffle(len(f.places), func(i, j int) { f.places[i], f.places[j] = f.places[j], f.places[i] })
	return nil
}

// A Change is a new address of an endpoint.
type Change struct {
	// Host is the endpoint's name in DNS; empty if its service is not headless.
	Host string
	// At is the time of the request to the member's API server.
	At time.Time

	number uint32
}

// Answers reports whether an address comes from this change or a later one.
func (c Change) Answers(ip netip.Addr) bool { return numberOf(ip) >= c.number }

// Change makes the next change in the order.
func (f *Fleet) Change(ctx context.Context) (Change, error) {
	p := f.places[int(f.number)%len(f.places)]
	f.number++
	c := Change{At: time.Now(), number: f.number}
	if headless(p.service) {
		c.Host = Host(p.first) + "." + p.member.ID + "." + Name(p.service)
	}
	slice, err := p.member.client.DiscoveryV1().EndpointSlices(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return c, err
	}
	return c, p.member.client.Move(ctx, slice, export.AnnotationTriggerTime, Address(changed+f.number%changed))
}
