// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/probe"
	selfsigned "github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// Namespace is the namespace of the services in scenarios.
const Namespace = "demo"

// A Cluster is the API server, the controller and the DNS of a cluster. Its methods must be called from the goroutine
// of the scenario.
type Cluster struct {
	// Cluster reaches the objects of Namespace with all rights, even during outages.
	*scenario.Cluster
	// API is the API server.
	API *apiserver.Server

	t       *testing.T
	name    string
	network *network.Network
	config  *rest.Config

	stopServing func()
	stopped     bool        // whether the API server is stopped
	impostor    atomic.Bool // whether clients get a certificate of an unknown authority
}

func newCluster(t *testing.T, n *network.Network, name string, number int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, name: name, network: n}
	ranges := []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(100 + number), 0, 0}), 16)}
	if name == "dual" {
		ranges = append(ranges, netip.MustParsePrefix("fd00:100::/108"))
	}
	c.API = apiserver.New(apiserver.Options{Name: name, ServiceCIDRs: ranges})
	c.config = &rest.Config{Host: "https://" + name, Transport: c.API, QPS: -1}
	c.serve()
	return c
}

// platform returns the parts of the cluster that scenarios use.
func (c *Cluster) platform() scenario.Platform {
	administrator := c.Config()
	administrator.Host = "https://" + apiserver.Administrator
	return scenario.Platform{
		Admin: administrator, Controller: c.config, DNS: c.config, Credential: c.Kubeconfig, Namespace: Namespace,
		Dial: c.network.Dialer(c.name),
	}
}

// Config returns a configuration that has all rights and bypasses the network.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns a kubeconfig with which a reader reaches the cluster over the network.
func (c *Cluster) Kubeconfig(reader string) []byte {
	text, err := selfsigned.Kubeconfig("member", "https://"+c.name, pki().authority, "token-of-"+reader)
	if err != nil {
		panic(err) // cannot happen
	}
	return text
}

// Target makes a replica serve as a probe target at an address of the network, and probe the targets of other clusters.
func (c *Cluster) Target(address string) func(*controller.Options) {
	return func(options *controller.Options) {
		listener, err := c.network.Listen(address)
		c.Must(err)
		options.Probes = listener
	}
}

// serve lets other clusters reach the API server over the network.
func (c *Cluster) serve() {
	listener, err := c.network.Listen(c.name)
	if err != nil {
		c.t.Fatal(err)
	}
	config := pki().server.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if c.impostor.Load() {
			return pki().impostor, nil
		}
		return nil, nil //nolint:nilnil // use the listener's TLS configuration
	}
	server := &http.Server{
		Handler: c.API, TLSConfig: config, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, "", "") // returns when the server is closed
	}()
	c.stopServing = func() {
		_ = server.Close()
		<-done
	}
}

// OfferTargets sets the probe targets of the cluster, as the EndpointSlice controller does.
func (c *Cluster) OfferTargets(targets ...string) {
	c.t.Helper()
	var endpoints []string
	for _, each := range targets {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%q], conditions: {ready: true, serving: true}}", each))
	}
	c.Put(fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
  metadata: {namespace: %s, name: targets, labels: {%s: %s}}, ports: [{name: %s, port: 8081, protocol: TCP}], endpoints: [%s]}`,
		member.DefaultNamespace, export.LabelKubernetesService, probe.Service, probe.Port, strings.Join(endpoints, ", ")))
}

// StopAPI kills the API server: connections are reset, and new ones are refused.
func (c *Cluster) StopAPI() {
	c.API.Stop()
	c.stopServing()
	c.network.ResetAll(c.Name)
	c.stopServing = func() {}
	c.stopped = true
}

// FreezeAPI makes the API server hang like a stopped process: it accepts connections but does not answer.
func (c *Cluster) FreezeAPI() {
	c.network.Freeze(c.Name)
	c.API.Freeze()
}

// StartAPI undoes StopAPI and FreezeAPI. It does nothing if the API server runs.
func (c *Cluster) StartAPI() {
	c.API.Thaw()
	c.network.Thaw(c.Name)
	if c.stopped {
		c.stopped = false
		c.serve()
		c.API.Start()
	}
}

// SetImpostor chooses the certificate for new connections to the API server: a valid one, or one of an unknown
// authority.
func (c *Cluster) SetImpostor(impostor bool) {
	c.impostor.Store(impostor)
	c.network.ResetAll(c.Name)
}
