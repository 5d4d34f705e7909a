// SPDX-License-Identifier: Apache-2.0

// Package probe is a CoreDNS plugin that hands out the chain of plugins after it, so that a benchmark in the same
// process can put queries to plugins that were set up from a Corefile as in a server. It is itself no part of the
// chain.
//
//	probe NAME
package probe

import (
	"sync"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
)

const pluginName = "probe"

func init() { plugin.Register(pluginName, setup) }

var handlers sync.Map // of plugin.Handler, by name

func setup(c *caddy.Controller) error {
	var name string
	if !c.Next() || !c.Args(&name) || c.NextArg() {
		return plugin.Error(pluginName, c.ArgErr())
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		handlers.Store(name, next)
		return next
	})
	return nil
}

// Handler is what comes after the probe of that name in a server that was started in this process, or nil.
func Handler(name string) plugin.Handler {
	handler, ok := handlers.Load(name)
	if !ok {
		return nil
	}
	return handler.(plugin.Handler)
}
