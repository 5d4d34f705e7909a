// SPDX-License-Identifier: Apache-2.0

// Package ceiling is a CoreDNS plugin that does as little as a plugin can: it answers every query, whatever its name
// and type, with one record that it made at its start. What a server does with it is the most that the server can do.
//
//	ceiling [KUBECONFIG]
//
// With a kubeconfig it also watches the EndpointSlices of imported services by client-go, and drops what it gets: the
// least that a plugin does for an update.
package ceiling

import (
	"context"
	"net"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

const pluginName = "ceiling"

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	if !c.Next() {
		return plugin.Error(pluginName, c.ArgErr())
	}
	args := c.RemainingArgs()
	if len(args) > 1 || c.Next() {
		return plugin.Error(pluginName, c.ArgErr())
	}
	dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return New() })
	if len(args) == 0 {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	c.OnStartup(func() error { return startWatch(ctx, args[0]) })
	c.OnShutdown(func() error {
		stop()
		return nil
	})
	return nil
}

// Ceiling is the plugin.
type Ceiling struct{ answer []dns.RR }

// New makes the record that is answered.
func New() *Ceiling {
	return &Ceiling{answer: []dns.RR{&dns.A{
		Hdr: dns.RR_Header{Name: "web-0.demo.svc.clusterset.local.", Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5},
		A:   net.IPv4(192, 0, 2, 1).To4(),
	}}}
}

// Name implements plugin.Handler.
func (*Ceiling) Name() string { return pluginName }

// ServeDNS implements plugin.Handler.
func (c *Ceiling) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative = true
	m.Answer = c.answer
	if err := w.WriteMsg(m); err != nil {
		return dns.RcodeServerFailure, err
	}
	return dns.RcodeSuccess, nil
}
