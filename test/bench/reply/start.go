// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"errors"
	"fmt"
	"sync"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	_ "github.com/coredns/coredns/plugin/bind" // what the Corefiles name
	_ "github.com/coredns/coredns/plugin/kubernetes"
	clog "github.com/coredns/coredns/plugin/pkg/log"

	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster"
	"github.com/clusterset-dns/clusterset-dns/test/bench/probe"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
)

// directives tells the server of this process once what its Corefiles may hold.
var directives = sync.OnceValue(func() error {
	dnsserver.Quiet, caddy.Quiet = true, true
	clog.Discard()
	return dnsserver.SetDirectives([]string{"bind", "probe", "multicluster", "kubernetes"})
})

// Instance is a server that runs in this process.
type Instance struct {
	// Handler is its plugin.
	Handler  plugin.Handler
	instance *caddy.Instance
}

// Start starts a server of the kind in this process, with a name of its own, and returns when it is synced, or as near
// to it as its plugin waits for. The namespaces are the only ones that it serves, all where there are none.
func Start(name string, kind servers.Kind, kubeconfig string, namespaces ...string) (*Instance, error) {
	if err := directives(); err != nil {
		return nil, fmt.Errorf("prepare the server: %w", err)
	}
	text := kind.Corefile(0, kubeconfig, namespaces, "probe "+name)
	instance, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(text), Filepath: name, ServerTypeName: "dns"})
	if err != nil {
		return nil, fmt.Errorf("start the server %s: %w", name, err)
	}
	return &Instance{Handler: probe.Handler(name), instance: instance}, nil
}

// Stop ends the server.
func (i *Instance) Stop() error {
	return errors.Join(append(i.instance.ShutdownCallbacks(), i.instance.Stop())...)
}
