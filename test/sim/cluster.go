// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	selfsigned "github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// Namespace is the one that services of scenarios are in.
const Namespace = "demo"

// A Cluster is an API server, the controller and the DNS of a cluster. Its
// methods are for the goroutine of the scenario.
type Cluster struct {
	// Cluster has the objects of Namespace, with all rights, and through any outage.
	*scenario.Cluster
	// API is the API server.
	API *apiserver.Server

	t       *testing.T
	name    string
	network *network.Network
	config  *rest.Config

	stopServing func()
	stopped     bool        // the API server
	impostor    atomic.Bool // the certificate is one that nobody knows
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
	for _, each := range standard() {
		c.Must(c.API.Write(each))
	}
	c.serve()
	return c
}

// platform is what a scenario has of the cluster.
func (c *Cluster) platform() scenario.Platform {
	administrator := c.Config()
	administrator.Host = "https://" + apiserver.Administrator
	return scenario.Platform{
		Admin: administrator, Controller: c.config, DNS: c.config, Credential: c.Kubeconfig, Namespace: Namespace,
		Options: controller.Options{DialMember: c.network.Dialer(c.name)},
	}
}

// Config reaches the API server with all rights, not over the network.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns one with which a reader reaches the cluster over the network.
func (c *Cluster) Kubeconfig(reader string) []byte {
	text, err := selfsigned.Kubeconfig("member", "https://"+c.name, pki().authority, "token-of-"+reader, member.DefaultNamespace)
	if err != nil {
		panic(err) // it has no reason to fail
	}
	return text
}

// Canary has a replica answer probes at an address of the network, and probe those of others.
func (c *Cluster) Canary(address string) func(*controller.Options) {
	return func(options *controller.Options) {
		listener, err := c.network.Listen(address)
		c.Must(err)
		options.Canary, options.DialCanary = listener, options.DialMember
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
		return nil, nil //nolint:nilnil // the config itself
	}
	server := &http.Server{
		Handler: c.API, TLSConfig: config, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, "", "") // it ends when it is closed
	}()
	c.stopServing = func() {
		_ = server.Close()
		<-done
	}
}
