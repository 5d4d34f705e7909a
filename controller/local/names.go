// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// resolveEvery is how often names are resolved: TTLs of load balancers are longer, and a DNS server caches that long.
	resolveEvery = 15 * time.Second
	// resolvePatience bounds one question.
	resolvePatience = 5 * time.Second
)

// Names are the addresses of names of load balancers. Its methods may be called concurrently.
type Names struct {
	// Lookup returns the addresses of a name; nil means that of net.DefaultResolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	Clock  clock.WithTicker

	known atomic.Pointer[map[string][]netip.Addr]
}

// Addresses returns the sorted addresses of a name as last known, and false before they are. The list is shared and must not
// be changed.
func (n *Names) Addresses(name string) (addresses []netip.Addr, known bool) {
	if all := n.known.Load(); all != nil {
		addresses, known = (*all)[name]
	}
	return addresses, known
}

// Run resolves the names that used returns every 15 s until the context ends, and calls changed after a change. A name that
// has no addresses at the moment, or cannot be resolved, keeps those that were known.
func (n *Names) Run(ctx context.Context, used func() []string, changed func()) {
	ticker := n.Clock.NewTicker(resolveEvery)
	defer ticker.Stop()
	for {
		before := map[string][]netip.Addr{}
		if all := n.known.Load(); all != nil {
			before = *all
		}
		now := map[string][]netip.Addr{}
		for _, name := range used() {
			addresses, err := n.resolve(ctx, name)
			if err != nil || len(addresses) == 0 {
				klog.FromContext(ctx).V(1).Info("Cannot resolve the name of a load balancer; its last known addresses stay", "name", name, "err", err)
				addresses = before[name]
			}
			if len(addresses) > 0 {
				now[name] = addresses
			}
		}
		n.known.Store(&now)
		if !maps.EqualFunc(before, now, slices.Equal) {
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// resolve returns the sorted addresses of a name.
func (n *Names) resolve(ctx context.Context, name string) (addresses []netip.Addr, err error) {
	limited, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	if n.Lookup != nil {
		addresses, err = n.Lookup(limited, name)
	} else {
		addresses, err = net.DefaultResolver.LookupNetIP(limited, "ip", name)
	}
	for i := range addresses {
		addresses[i] = addresses[i].Unmap()
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses), err
}
