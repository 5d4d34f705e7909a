// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
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
// when it stops. A reload starts the new server before it stops the old one, so that what both have in common goes on.
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
	m.enlist(c)
	m.keys = c.ServerBlockKeys
	if m.previous = m.predecessor(); m.previous != nil {
		m.source.Store(m.previous.source.Load()) // it is ready before it starts
	}
	c.OnStartup(func() error {
		m.setAddresses(localAddresses(config.ListenHosts))
		m.signature = signatureSize(config.TsigSecret)
		source, stop, err := m.start()
		if err != nil {
			return plugin.Error(pluginName, err)
		}
		started.Store(m, m.notifySecondaries(config.Handler("transfer"), source.Synced(), stop))
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

// start begins to watch, and returns the watch and what ends it. It returns once there are answers, or once none are to
// be expected soon. Until there are some, the plugin answers from the objects that its predecessor watches, or else with
// SERVFAIL.
func (m *Multicluster) start() (source *watch.Source, stop func(), err error) {
	previous := m.previous
	m.previous = nil // it must not outlive its instance
	source, leave, err := watch.Open(m.options, new(observer))
	if err != nil {
		return nil, nil, err
	}
	x := source.View(m.config())
	end := func() {
		source.Release(x)
		leave()
	}
	if m.await(source) {
		m.serve(source, x)
		return source, end, nil
	}
	forget := m.servePrevious(previous)
	if forget == nil {
		log.Warningf("Starting before %v were listed: names in %v get SERVFAIL until they are", source.Missing(), m.Zones)
		m.serve(source, x)
		return source, end, nil
	}
	log.Warningf("Starting before %v were listed: names in %v get the answers of the previous Corefile until they are",
		source.Missing(), m.Zones)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if await(ctx, source.Synced()) {
			m.serve(source, x)
			log.Infof("Names in %v get the answers of the present Corefile", m.Zones)
		}
		forget()
	}()
	return source, func() {
		cancel()
		end()
	}, nil
}

// serve answers from an index of a source from now on.
func (m *Multicluster) serve(source *watch.Source, x *index.Index) {
	m.index.Store(x)
	m.source.Store(source)
}

// servePrevious answers from the objects that the predecessor watches, with the present zones and TTL, until the
// function that it returns is called. The function is nil if there is no predecessor.
func (m *Multicluster) servePrevious(previous *Multicluster) (forget func()) {
	if previous == nil {
		return nil
	}
	source := previous.source.Load()
	leave := watch.Share(source)
	if leave == nil {
		return nil
	}
	x := source.View(m.config())
	m.serve(source, x)
	return func() {
		source.Release(x)
		leave()
	}
}

// await waits until everything was listed, and reports whether it was. It gives up after the startup timeout, or when
// the API server has refused: that can last.
func (m *Multicluster) await(source *watch.Source) bool {
	timeout := time.NewTimer(m.startupTimeout)
	defer timeout.Stop()
	select {
	case <-source.Settled():
		if len(source.Missing()) > 0 {
			return false
		}
	case <-timeout.C:
		return false
	}
	select {
	case <-source.Synced(): // what was listed is published
		return true
	case <-timeout.C:
		return false
	}
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
