// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"slices"
	"sync"

	"github.com/coredns/caddy"
)

// started has the functions that stop the plugins of this process, by plugin. CoreDNS shuts down the plugins of an
// instance that it replaces. It forgets those of an instance that did not start because something else in it failed,
// and those of an old one that something else kept from being shut down: these are orphans, which a failed restart
// stops.
var started sync.Map

// stop stops a started plugin. Later calls do nothing.
func (m *Multicluster) stop() {
	if stop, ok := started.LoadAndDelete(m); ok {
		stop.(func())()
	}
}

// stopOrphans stops the plugins that belong to no instance.
func stopOrphans() error {
	instances := caddy.Instances()
	for key := range started.Range {
		if m := key.(*Multicluster); m.owner(instances) == nil {
			m.stop()
		}
	}
	return nil
}

// owner is the instance that the plugin belongs to, or nil.
func (m *Multicluster) owner(instances []*caddy.Instance) *caddy.Instance {
	at := slices.IndexFunc(instances, func(i *caddy.Instance) bool {
		i.StorageMu.RLock()
		defer i.StorageMu.RUnlock()
		return i.Storage[m] != nil
	})
	if at < 0 {
		return nil
	}
	return instances[at]
}

// replacesAnswers reports whether a plugin of another instance has answers for one of the zones. A reload that fails
// keeps them.
func (m *Multicluster) replacesAnswers(instances []*caddy.Instance) bool {
	for key := range started.Range {
		other := key.(*Multicluster)
		owner := other.owner(instances)
		if owner != nil && owner != m.owner(instances) && other.snapshot() != nil &&
			slices.ContainsFunc(m.Zones, func(zone string) bool { return slices.Contains(other.Zones, zone) }) {
			return true
		}
	}
	return false
}

// hooked is the key under which an instance stores that its failed restarts stop orphans.
type hooked struct{}

// hookRestarts makes failed restarts of each instance stop orphans. The instance that is to be replaced may have no
// such plugin itself. Plugins call it when they start, while no other instance is restarted.
func hookRestarts(instances []*caddy.Instance) {
	for _, i := range instances {
		i.StorageMu.Lock()
		known := i.Storage[hooked{}] != nil
		i.Storage[hooked{}] = hooked{}
		i.StorageMu.Unlock()
		if !known {
			// CoreDNS takes the old instance out of its list when the new one serves, and the new one if it cannot.
			i.OnRestartFailed = append(i.OnRestartFailed, stopOrphans)
		}
	}
}
