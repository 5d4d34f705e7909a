// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

func init() { plugin.Register(pluginName, setup) }

// setup parses the Corefile and adds the plugin to its server block. The watch runs while the server does. A reload
// starts the new server before it stops the old one, so both share a watch with equal options.
func setup(c *caddy.Controller) error {
	m, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	if _, err := m.options.Load(); err != nil {
		return plugin.Error(pluginName, c.Err(err.Error()))
	}
	m.server.AddPlugin(func(next plugin.Handler) plugin.Handler {
		m.Next = next
		return m
	})
	for _, host := range m.server.ListenHosts {
		for _, key := range c.ServerBlockKeys {
			m.keys = append(m.keys, host+" "+key)
		}
	}
	before := running()
	m.reloads = len(before) > 0
	c.Set(m, m) // in the storage of its Caddy instance, for running
	ctx, stop := context.WithCancel(context.Background())
	c.OnStartup(func() error {
		m.setAddresses(localAddresses(m.server.ListenHosts))
		if err := m.start(ctx, before); err != nil {
			stop()
			return plugin.Error(pluginName, err)
		}
		before = nil // otherwise they would outlive their instance
		m.notifySecondaries(ctx, m.server.Handler("transfer"))
		return nil
	})
	c.OnShutdown(func() error {
		stop()
		return nil
	})
	for _, instance := range caddy.Instances() { // CoreDNS does not shut down plugins of an instance that fails to replace another
		instance.OnRestartFailed = append(instance.OnRestartFailed, func() error {
			if !slices.ContainsFunc(caddy.Instances(), m.isOf) {
				stop()
			}
			return nil
		})
	}
	return nil
}

func newMulticluster() *Multicluster {
	return &Multicluster{
		server:         new(dnsserver.Config),
		config:         record.Config{TTL: defaultTTL},
		startupTimeout: defaultStartupTimeout,
		now:            time.Now,
	}
}

// setAddresses makes the records of the zones' apexes.
func (m *Multicluster) setAddresses(addresses []netip.Addr) {
	m.apexes = nil
	for zone := range m.config.Zones {
		m.apexes = append(m.apexes, record.NewApex(&m.config, zone, addresses))
	}
}

// start runs the watch until the context ends. It returns once the plugin has answers, cannot get them soon, or
// startupTimeout is over. Until it has answers, the one of the plugins before that it replaces answers, if there is one.
func (m *Multicluster) start(ctx context.Context, before []*Multicluster) error {
	config := m.config // a copy: a shared source may outlive the plugin and must not keep it in memory
	source, err := watch.Open(ctx, m.options, &config)
	if err != nil {
		return err
	}
	replacing, replaced := context.WithCancel(ctx)
	for _, previous := range before {
		if m.replaces(previous) && previous.source.Load().Share(replacing) {
			m.previous.Store(previous)
		}
	}
	m.source.Store(source)
	m.index.Store(source.Index())
	select {
	case <-source.Settled():
	case <-time.After(m.startupTimeout):
	}
	if m.state() == nil {
		log.Warningf("Starting before %v were listed: until they are, names in %v get the answers of the previous Corefile, else "+
			"those of the next plugin with fallthrough, else SERVFAIL", source.Missing(), m.config.Zones)
	}
	go func() {
		if await(ctx, source.Synced()) {
			m.previous.Store(nil) // otherwise it would outlive its instance
			replaced()
		}
	}()
	return nil
}

// localAddresses returns the addresses of a server that listens on the hosts. A host that is no address means all global
// addresses of this host. Addresses with a zone are left out, because no record can hold the zone.
func localAddresses(hosts []string) (addresses []netip.Addr) {
	for _, host := range hosts {
		addr, err := netip.ParseAddr(host)
		if err == nil && !addr.IsUnspecified() {
			if addr.Zone() == "" {
				addresses = append(addresses, addr.Unmap())
			}
			continue
		}
		interfaces, _ := net.InterfaceAddrs()
		for _, address := range interfaces {
			if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
				addresses = append(addresses, prefix.Addr().Unmap())
			}
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}

// isOf reports whether a plugin was set up in an instance.
func (m *Multicluster) isOf(instance *caddy.Instance) bool {
	instance.StorageMu.RLock()
	defer instance.StorageMu.RUnlock()
	return instance.Storage[m] != nil
}

// running returns the plugins with answers of the running servers.
func running() (all []*Multicluster) {
	for _, instance := range caddy.Instances() {
		instance.StorageMu.RLock()
		for key := range instance.Storage {
			if m, ok := key.(*Multicluster); ok && m.active().state() != nil {
				all = append(all, m.active())
			}
		}
		instance.StorageMu.RUnlock()
	}
	return all
}

// replaces reports whether m answers for another plugin after a reload: both have the same server block and view, and a
// common zone.
func (m *Multicluster) replaces(other *Multicluster) bool {
	return m.server.ViewName == other.server.ViewName && overlap(m.keys, other.keys) && overlap(m.config.Zones, other.config.Zones)
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
