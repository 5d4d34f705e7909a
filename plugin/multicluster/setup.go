// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
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
	reload := true
	c.OnFirstStartup(func() error {
		reload = false
		return nil
	})
	c.OnStartup(func() error {
		instances := caddy.Instances()
		hookRestarts(instances)
		m.setAddresses(localAddresses(config.ListenHosts))
		m.signature = signatureSize(config.TsigSecret)
		stop, err := m.start(reload && m.replacesAnswers(instances))
		if err != nil {
			return plugin.Error(pluginName, err)
		}
		started.Store(m, m.notifySecondaries(config.Handler("transfer"), m.source.Load().Synced(), stop))
		return nil
	})
	c.OnShutdown(func() error {
		m.stop()
		return nil
	})
	c.Set(m, m)
	return nil
}

func newMulticluster() *Multicluster {
	return &Multicluster{
		ttl:            defaultTTL,
		startupTimeout: defaultStartupTimeout,
		now:            time.Now,
	}
}

// config is that of the index.
func (m *Multicluster) config() *record.Config {
	config := &record.Config{Zones: m.Zones, TTL: m.ttl, IgnoreEmpty: m.ignoreEmpty}
	if len(m.Reverse) > 0 {
		config.Reverse, config.Cluster = m.Reverse, m.cluster
	}
	return config
}

// signatureSize is how many octets the longest signature with one of the keys takes in a reply (RFC 8945, section 4.2);
// 0 without keys.
func signatureSize(secrets map[string]string) (octets int) {
	const macSize = 64 // of SHA-512
	for key := range secrets {
		octets = max(octets, dns.Len(&dns.TSIG{
			Hdr: dns.RR_Header{Name: key}, Algorithm: dns.HmacSHA512, MACSize: macSize,
			MAC: strings.Repeat("00", macSize),
		}))
	}
	return octets
}

// setAddresses makes the records of the zones' apexes.
func (m *Multicluster) setAddresses(addresses []netip.Addr) {
	m.apexes = nil
	for _, zone := range m.Zones {
		m.apexes = append(m.apexes, newApex(zone, index.NameServer(zone), m.ttl, addresses))
	}
	for _, zone := range m.Reverse {
		m.apexes = append(m.apexes, newReverseApex(zone, index.NameServer(m.Zones[0]), m.ttl, addresses))
	}
}

// start begins to watch, and returns what ends the watch. It returns once there are answers, or once none are to be
// expected soon: after the startup timeout, or when the API server has refused. Where that leaves the plugin without
// answers, names get SERVFAIL until there are some, unless the plugin replaces another one that answers for its zones:
// then start fails, so that the server keeps the other one.
func (m *Multicluster) start(replaces bool) (stop func(), err error) {
	source, leave, err := watch.Open(m.options, new(observer))
	if err != nil {
		return nil, err
	}
	x := source.View(m.config())
	m.source.Store(source)
	m.index.Store(x)
	stop = func() {
		source.Release(x)
		leave()
	}
	settled, limit := source.Settled(), m.startupTimeout
	if replaces { // rights may be granted in the same breath, and the other plugin answers meanwhile
		settled, limit = nil, max(limit, defaultStartupTimeout)
	}
	timeout := time.NewTimer(limit)
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
	missing := source.Missing()
	if replaces {
		stop()
		return nil, fmt.Errorf("the API server did not list %v within %v, so the previous Corefile stays in use: reload again once it does", missing, limit)
	}
	log.Warningf("Starting before %v were listed: names in %v get SERVFAIL until they are", missing, m.Zones)
	return stop, nil
}

// localAddresses are the addresses of a server that listens on the hosts: the global ones, or else the link-local ones
// (NodeLocal DNSCache listens on 169.254.20.10), or else those of loopback. Link-local addresses of IPv6 mean nothing
// without their zone, which no record holds, and are left out.
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
