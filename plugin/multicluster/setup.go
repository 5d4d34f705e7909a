// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
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
	c.Set(m, m)                                  // in the storage of its Caddy instance, for stopOrphans
	for _, instance := range caddy.Instances() { // any of them may fail to restart, even an instance without the plugin
		instance.OnRestartFailed = append(instance.OnRestartFailed, stopOrphans)
	}
	for _, host := range m.server.ListenHosts {
		for _, key := range c.ServerBlockKeys {
			m.keys = append(m.keys, host+" "+key)
		}
	}
	c.OnStartup(func() error {
		m.setAddresses(localAddresses(m.server.ListenHosts))
		if m.server.Handler("cache") != nil {
			for key := range m.server.TsigSecret {
				m.signature = max(m.signature, sizeSignature+len(key)+1)
			}
		}
		ctx, stop := context.WithCancel(context.Background())
		if err := m.start(ctx); err != nil {
			stop()
			return plugin.Error(pluginName, err)
		}
		started.Store(m, stop)
		m.notifySecondaries(ctx, m.server.Handler("transfer"))
		return nil
	})
	c.OnShutdown(func() error {
		m.stop()
		return nil
	})
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
// startupTimeout is over. Until it has answers, the plugin that it replaces answers or, without one, answerUnsynced.
func (m *Multicluster) start(ctx context.Context) error {
	config := m.config // a copy: a shared source may outlive the plugin and must not keep it in memory
	source, err := watch.Open(ctx, m.options, &config)
	if err != nil {
		return err
	}
	replacing, replaced := context.WithCancel(ctx)
	previous := m.predecessor()
	if previous != nil && !previous.source.Load().Share(replacing) {
		previous = nil
	}
	m.previous.Store(previous)
	m.source.Store(source)
	m.index.Store(source.Index())
	listed := m.state() != nil // another server block or the plugin before a reload listed everything
	select {
	case <-source.Settled():
	case <-time.After(m.startupTimeout):
	}
	late := m.state() == nil
	if late {
		answers := "SERVFAIL or, with fallthrough, the answers of the next plugin"
		if previous != nil {
			answers = "the answers of the previous Corefile"
		}
		log.Warningf("Starting before %v were listed: names in %v get %s until they are", source.Missing(), m.config.Zones, answers)
	}
	go func() {
		if await(ctx, source.Synced()) {
			m.previous.Store(nil) // otherwise it would outlive its instance
			replaced()
			if late {
				log.Infof("Names in %v get the answers of the present Corefile", m.config.Zones)
			}
			if !listed {
				debug.FreeOSMemory() // the lists took several times the memory of the records
			}
		}
	}()
	return nil
}

// localAddresses returns the addresses of a server that listens on the hosts: global ones, else link-local ones
// (NodeLocal DNSCache listens on 169.254.20.10), else loopback ones. Link-local IPv6 addresses are left out: they need
// a zone, which no record can hold.
func localAddresses(hosts []string) []netip.Addr {
	var addresses []netip.Addr
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			addresses = append(addresses, addr.Unmap().WithZone(""))
		}
	}
	if len(addresses) == 0 || slices.ContainsFunc(addresses, netip.Addr.IsUnspecified) {
		addresses = slices.DeleteFunc(addresses, netip.Addr.IsUnspecified)
		interfaces, err := net.InterfaceAddrs()
		if err != nil {
			log.Warningf("The addresses of this host are unknown, and so is the address of the name server: %v", err)
		}
		for _, address := range interfaces {
			if prefix, err := netip.ParsePrefix(address.String()); err == nil {
				addresses = append(addresses, prefix.Addr().Unmap())
			}
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	for _, kind := range []func(netip.Addr) bool{
		netip.Addr.IsGlobalUnicast,
		func(addr netip.Addr) bool { return addr.Is4() && addr.IsLinkLocalUnicast() },
		netip.Addr.IsLoopback,
	} {
		found := slices.DeleteFunc(slices.Clone(addresses), func(addr netip.Addr) bool { return !kind(addr) })
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// started maps the running plugins of this process to the functions that stop them.
var started sync.Map

// stop stops a started plugin. Later calls do nothing.
func (m *Multicluster) stop() {
	if stop, ok := started.LoadAndDelete(m); ok {
		stop.(context.CancelFunc)()
	}
}

// stopOrphans stops the plugins that no running instance has. CoreDNS shuts down the plugins of a replaced instance,
// but not those of an instance that failed to start or to stop.
func stopOrphans() error {
	for key := range started.Range {
		running := slices.ContainsFunc(caddy.Instances(), func(instance *caddy.Instance) bool {
			instance.StorageMu.RLock()
			defer instance.StorageMu.RUnlock()
			return instance.Storage[key] != nil
		})
		if !running {
			key.(*Multicluster).stop()
		}
	}
	return nil
}

// predecessor returns the plugin that answers for the plugin that m replaces: same server block and view, and a common
// zone. It is nil if there is none with answers.
func (m *Multicluster) predecessor() *Multicluster {
	for key := range started.Range {
		other := key.(*Multicluster)
		if m.server.ViewName == other.server.ViewName && overlap(m.keys, other.keys) && overlap(m.config.Zones, other.config.Zones) &&
			other.active().state() != nil {
			return other.active()
		}
	}
	return nil
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
