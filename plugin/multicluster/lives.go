// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"slices"
	"sync"

	"github.com/coredns/caddy"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
)

// lives are the plugins that were started and not stopped. The server stops those of an instance that it shuts down. It
// forgets those of an instance that it gives up because something else in it failed to start, and those of an old one
// that something else in it kept from being shut down: whoever belongs to no instance any more is lost.
type lives struct {
	mu      sync.Mutex
	running map[*Multicluster]func()
}

// all are those of this process.
var all = lives{running: make(map[*Multicluster]func())}

// begin notes a start, and what ends it.
func (l *lives) begin(m *Multicluster, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[m] = stop
}

// knownTo is what the one plugin that runs for the same zones at the same place knows: the one that m is to replace. It
// is nil where there is none or more than one, or where it knows nothing.
func (l *lives) knownTo(m *Multicluster) *index.Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	var known []*index.Snapshot
	for other := range l.running {
		if other.serves == m.serves && slices.Equal(other.Zones, m.Zones) {
			known = append(known, other.snapshot())
		}
	}
	if len(known) != 1 {
		return nil
	}
	return known[0]
}

// end ends a plugin; twice is as once.
func (l *lives) end(m *Multicluster) {
	l.mu.Lock()
	stop := l.running[m]
	delete(l.running, m)
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// endLost ends the plugins that belong to none of the instances.
func (l *lives) endLost(instances []*caddy.Instance) {
	l.mu.Lock()
	var lost []*Multicluster
	for m := range l.running {
		if !lists(instances, m) {
			lost = append(lost, m)
		}
	}
	l.mu.Unlock()
	for _, m := range lost {
		l.end(m)
	}
}

// lists tells whether the plugin belongs to one of the instances.
func lists(instances []*caddy.Instance, m *Multicluster) bool {
	return slices.ContainsFunc(instances, func(i *caddy.Instance) bool {
		i.StorageMu.RLock()
		defer i.StorageMu.RUnlock()
		return i.Storage[m] != nil
	})
}

// heeding is the key of what an instance stores to say that it heeds restarts that fail.
type heeding struct{}

// heedFailures makes each of the instances end, when its restart fails, what that leaves behind. The one that is to be
// replaced may have no such plugin itself. It is called by plugins that start, while no instance is restarted but the one
// that they are to replace.
func heedFailures(instances []*caddy.Instance) {
	for _, i := range instances {
		i.StorageMu.Lock()
		heeds := i.Storage[heeding{}] != nil
		i.Storage[heeding{}] = heeding{}
		i.StorageMu.Unlock()
		if heeds {
			continue
		}
		i.OnRestartFailed = append(i.OnRestartFailed, func() error {
			// The server takes the old instance out of its list when the new one serves, and the new one when it cannot.
			all.endLost(caddy.Instances())
			return nil
		})
	}
}
