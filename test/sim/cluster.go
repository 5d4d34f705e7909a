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
	"github.com/clusterset-dns/clusterset-dns/test/answers"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// Namespace is the one that services of scenarios are in.
const Namespace = "demo"

// A Cluster is an API server, the controller and the DNS of a cluster. Its
// methods are for the goroutine of the scenario.
type Cluster struct {
	*scenario.Objects // of Namespace, with all rights, and through any outage
	// API is the API server.
	API *apiserver.Server
	// Always is what changes the options of all processes of the controller that are started from now on.
	Always []func(*controller.Options)
	// Controller is the one that was started last by StartController.
	Controller *Controller

	t       *testing.T
	network *network.Network
	config  *rest.Config

	stopServing func()
	stopped     bool        // the API server
	impostor    atomic.Bool // the certificate is one that nobody knows
	controllers []*Controller
}

func newCluster(t *testing.T, n *network.Network, name string, number int) *Cluster {
	t.Helper()
	c := &Cluster{t: t, network: n}
	ranges := []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(100 + number), 0, 0}), 16)}
	if name == "dual" {
		ranges = append(ranges, netip.MustParsePrefix("fd00:100::/108"))
	}
	c.API = apiserver.New(apiserver.Options{Name: name, ServiceCIDRs: ranges})
	c.config = &rest.Config{Host: "https://" + name, Transport: c.API, QPS: -1}
	administrator := rest.CopyConfig(c.config)
	administrator.Host = "https://" + apiserver.Administrator
	c.Objects = scenario.NewObjects(t, name, Namespace, administrator)
	for _, namespace := range []string{member.DefaultNamespace, Namespace} {
		c.Put("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}")
	}
	for _, each := range standard() {
		c.Must(c.API.Write(each))
	}
	c.serve()
	return c
}

// serve lets other clusters reach the API server over the network.
func (c *Cluster) serve() {
	listener, err := c.network.Listen(c.Name)
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

// StartDNS starts the watch and the index of the plugin.
func (c *Cluster) StartDNS() {
	started, err := answers.Start(c.config)
	c.Must(err)
	c.DNS = started
}

// StopDNS stops it. It does nothing if it does not run.
func (c *Cluster) StopDNS() {
	if c.DNS != nil {
		c.DNS.Stop()
		c.DNS = nil
	}
}
