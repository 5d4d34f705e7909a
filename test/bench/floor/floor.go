// SPDX-License-Identifier: Apache-2.0

// Package floor is a CoreDNS plugin that answers with prepared replies, which is the least that a plugin can do per
// reply. When it starts, it queries a server with the queries in a file, one per line:
//
//	floor ADDRESS FILE
package floor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

const pluginName = "floor"

func init() { plugin.Register(pluginName, setup) }

func setup(c *caddy.Controller) error {
	var address, queries string
	if !c.Next() || !c.Args(&address, &queries) || c.NextArg() {
		return plugin.Error(pluginName, c.ArgErr())
	}
	all, err := ask(address, queries)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return all })
	return nil
}

// replies are the replies by question. They implement plugin.Handler.
type replies map[dns.Question]*dns.Msg

// ask sends the queries of a file, one per line, to a server.
func ask(address, queries string) (replies, error) {
	text, err := os.ReadFile(queries)
	if err != nil {
		return nil, err
	}
	all := replies{}
	for line := range strings.Lines(string(text)) {
		name, qtype, _ := strings.Cut(strings.TrimSpace(line), " ")
		query := new(dns.Msg).SetQuestion(name, dns.StringToType[qtype])
		query.SetEdns0(dns.DefaultMsgSize, false)
		reply, err := dns.Exchange(query, address)
		if err != nil {
			return nil, fmt.Errorf("ask %s for %s: %w", address, strings.TrimSpace(line), err)
		}
		// The server adds its own OPT record.
		reply.Extra = slices.Clip(slices.DeleteFunc(reply.Extra, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeOPT }))
		all[query.Question[0]] = reply
	}
	return all, nil
}

// Name implements plugin.Handler.
func (replies) Name() string { return pluginName }

// ServeDNS implements plugin.Handler.
func (all replies) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	known, ok := all[r.Question[0]]
	if !ok {
		return dns.RcodeServerFailure, fmt.Errorf("there is no reply to %s", r.Question[0].String())
	}
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative, m.Truncated = true, known.Truncated
	m.Answer, m.Ns, m.Extra, m.Rcode = known.Answer, known.Ns, known.Extra, known.Rcode
	return m.Rcode, w.WriteMsg(m)
}
