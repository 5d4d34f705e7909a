// SPDX-License-Identifier: Apache-2.0

// Package plane starts models of control planes: API servers in memory, with the controllers that the demo needs.
package plane

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// Start starts a plane for each name: an API server with TLS on a loopback address, and controllers of workloads. The
// planes run until stop is called, which also removes their files.
func Start(ctx context.Context, names ...string) (planes []*clusterset.Cluster, stop func() error, err error) {
	root, err := os.MkdirTemp("", "clusterset-dns-demo-")
	if err != nil {
		return nil, nil, err
	}
	var stops []func()
	stop = func() error {
		for _, each := range stops {
			each()
		}
		return os.RemoveAll(root)
	}
	for i, name := range names {
		started, end, err := newPlane(ctx, name, filepath.Join(root, name), byte(i))
		if stops = append(stops, end); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("start the model of %s: %w", name, err), stop())
		}
		planes = append(planes, started)
	}
	return planes, stop, nil
}

// newPlane starts a plane with a unique number. The third plane has the same pod and Service ranges as the first.
func newPlane(ctx context.Context, name, directory string, number byte) (p *clusterset.Cluster, stop func(), err error) {
	ranges, token := number%2, rand.Text()
	api := apiserver.New(apiserver.Options{
		Name: name, Administrator: token,
		ServiceCIDRs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 160 + ranges}), 16)},
	})
	server := httptest.NewUnstartedServer(api)
	server.EnableHTTP2, server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	server.StartTLS()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop = func() {
		cancel()
		server.CloseClientConnections() // ends watches
		server.Close()
	}
	p, err = clusterset.New(name, directory, &rest.Config{
		Host: server.URL, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
	})
	if err == nil {
		err = os.MkdirAll(directory, 0o700)
	}
	if err == nil {
		err = p.Apply(ctx, []byte(clusterset.CRDs))
	}
	if err == nil {
		err = play(running, api, p, netip.AddrFrom4([4]byte{10, 64 + ranges}), netip.AddrFrom4([4]byte{192, 0, 2, 10 * number}))
	}
	return p, stop, err
}

// WriteKubeconfig writes the administrator's kubeconfig for the planes, with a context for each.
func WriteKubeconfig(path string, planes ...*clusterset.Cluster) error {
	config := clientcmdapi.NewConfig()
	for _, p := range planes {
		is := p.Config()
		pki.Add(config, p.Name(), is.Host, is.CAData, is.BearerToken)
	}
	return clientcmd.WriteToFile(*config, path)
}
