// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

func init() { plugin.Register(pluginName, setup) }

// setup reads the Corefile and adds the plugin to its server block. The watch begins when the server starts and ends
// when it stops; a reload starts before it stops, so that what both have in common goes on.
func setup(c *caddy.Controller) error {
	m, err := parse(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	if _, err := m.options.Load(); err != nil {
		return plugin.Error(pluginName, c.Err(err.Error()))
	}
	config := dnsserver.GetConfig(c)
	config.AddPlugin(func(next plugin.Handler) plugin.Handler {
		m.Next = next
		return m
	})
	c.OnStartup(func() error {
		heedFailures(caddy.Instances())
		m.setAddresses(localAddresses(config.ListenHosts))
		m.signs = len(config.TsigSecret) > 0
		m.serves = fmt.Sprintf("%q %q %q %q %q", config.Transport, config.ListenHosts, config.Port, config.ViewName, config.Zone)
		stop, err := m.start()
		if err != nil {
			return plugin.Error(pluginName, err)
		}
		all.begin(m, stop)
		return nil
	})
	c.OnShutdown(func() error {
		all.end(m)
		return nil
	})
	c.Set(m, m)
	return nil
}

func newMulticluster() *Multicluster {
	return &Multicluster{
		ttl:            defaultTTL,
		startupTimeout: defaultStartupTimeout,
		seed:           maphash.MakeSeed(),
		now:            time.Now,
	}
}

// setAddresses makes the records of the zones' apexes.
func (m *Multicluster) setAddresses(addresses []netip.Addr) {
	m.apexes = make([]apex, len(m.Zones))
	for i, zone := range m.Zones {
		m.apexes[i] = newApex(zone, m.ttl, addresses)
	}
}

// start begins to watch, and returns once there are answers, or once no sooner answers are to be expected: after the
// startup timeout, or when the API server has refused. It returns what ends the watch. A reload loses no answers: until
// there are new ones, those of the plugin that is replaced are given, and where the API server refuses what the new
// Corefile needs, that is an error, so that the old one goes on.
func (m *Multicluster) start() (stop func(), err error) {
	known := all.knownTo(m)
	source, leave, err := watch.Open(m.options, new(observer))
	if err != nil {
		return nil, err
	}
	x := source.View(&index.Config{Zones: m.Zones, TTL: m.ttl})
	m.source.Store(source)
	m.index.Store(x)
	done := make(chan struct{})
	stop = func() {
		close(done)
		source.Release(x)
		leave()
	}
	settled := source.Settled()
	if known != nil {
		settled = nil // rights may be granted in the same breath, and meanwhile the old one answers
	}
	timeout := time.NewTimer(m.startupTimeout)
	defer timeout.Stop()
	select {
	case <-source.Synced():
		return stop, nil
	case <-settled:
		if len(source.Missing()) == 0 { // what was listed is about to be published
			select {
			case <-source.Synced():
			case <-timeout.C:
			}
			return stop, nil
		}
	case <-timeout.C:
	}
	if known != nil {
		missing := source.Missing()
		select {
		case <-source.Settled():
			if len(missing) > 0 {
				stop()
				return nil, fmt.Errorf("the API server has no %v, or does not let them be listed: the Corefile of before stays", missing)
			}
		default:
		}
		log.Warningf("Starting before %v were listed: names in %v get the answers of before the reload until they are", missing, m.Zones)
		m.before.Store(known)
		go m.forget(source, done)
		return stop, nil
	}
	log.Warningf("Starting before %v were listed: names in %v get SERVFAIL until they are", source.Missing(), m.Zones)
	return stop, nil
}

// forget gives up what was known before the reload once that is not needed any more: when all is listed, or when the
// plugin is done.
func (m *Multicluster) forget(source *watch.Source, done <-chan struct{}) {
	defer m.before.Store(nil)
	select {
	case <-done:
	case <-source.Synced():
	}
}

// localAddresses are the addresses that a server which listens on the hosts can be reached at. Loopback addresses are
// among them only where there are no others.
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
	reachable := slices.DeleteFunc(slices.Clone(addresses), func(addr netip.Addr) bool { return !addr.IsGlobalUnicast() })
	if len(reachable) > 0 {
		return reachable
	}
	return slices.DeleteFunc(addresses, func(addr netip.Addr) bool { return !addr.IsLoopback() })
}
