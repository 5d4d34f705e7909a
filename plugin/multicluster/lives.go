// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"slices"
	"sync"

	"github.com/coredns/caddy"
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

// answer reports whether a plugin of an instance other than m's has answers for one of m's zones: a reload that fails
// keeps them.
func (l *lives) answer(instances []*caddy.Instance, m *Multicluster) bool {
	others := slices.DeleteFunc(slices.Clone(instances), func(i *caddy.Instance) bool {
		return lists([]*caddy.Instance{i}, m)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.running {
		shares := slices.ContainsFunc(m.Zones, func(zone string) bool { return slices.Contains(other.Zones, zone) })
		if shares && other.snapshot() != nil && lists(others, other) {
			return true
		}
	}
	return false
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
