// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"slices"
	"sync"

	"github.com/coredns/caddy"
)

// started has the functions that stop the plugins of this process, by plugin.
var started sync.Map

// stop stops a started plugin. Later calls do nothing.
func (m *Multicluster) stop() {
	if stop, ok := started.LoadAndDelete(m); ok {
		stop.(func())()
	}
}

// enlist notes the plugin's instance, which is the one whose Storage has the plugin. A failed restart of any instance,
// even of one without the plugin, then stops orphans.
func (m *Multicluster) enlist(c *caddy.Controller) {
	c.Set(m, m)
	for _, instance := range caddy.Instances() {
		instance.StorageMu.RLock()
		if instance.Storage[m] != nil {
			m.instance = instance
		}
		instance.StorageMu.RUnlock()
		instance.OnRestartFailed = append(instance.OnRestartFailed, stopOrphans)
	}
}

// stopOrphans stops the plugins whose instance does not run. CoreDNS shuts down the plugins of an instance that another
// one replaces, but not those of an instance that failed to start, or to stop.
func stopOrphans() error {
	instances := caddy.Instances()
	for key := range started.Range {
		if m := key.(*Multicluster); !slices.Contains(instances, m.instance) {
			m.stop()
		}
	}
	return nil
}

// predecessor returns the plugin that answers for the one that the new one replaces, in the same server block and for one
// of the zones. It is nil if there is none with answers. Setup asks for it, when no plugin of the new instance has
// started.
func (m *Multicluster) predecessor() *Multicluster {
	for key := range started.Range {
		if other := key.(*Multicluster); overlap(m.keys, other.keys) && overlap(m.Zones, other.Zones) {
			if other = other.active(); other.state() != nil {
				return other
			}
		}
	}
	return nil
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
