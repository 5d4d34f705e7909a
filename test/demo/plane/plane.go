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

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// A Plane is a model of a control plane: an API server with TLS on a loopback address, and controllers of workloads.
type Plane struct {
	name, directory string
	config          *rest.Config // of the administrator
	kube            kubernetes.Interface
	dynamic         dynamic.Interface
	stop            func()
}

// Name is the name of the cluster.
func (p *Plane) Name() string { return p.name }

// Directory is a directory for files of the plane.
func (p *Plane) Directory() string { return p.directory }

// Config returns the administrator's configuration. The caller may change it.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.config) }

// Client has all rights.
func (p *Plane) Client() kubernetes.Interface { return p.kube }

// Dynamic has all rights.
func (p *Plane) Dynamic() dynamic.Interface { return p.dynamic }

// Start starts a plane for each name. The planes run until stop is called, which also removes their files.
func Start(ctx context.Context, names ...string) (planes []*Plane, stop func() error, err error) {
	root, err := os.MkdirTemp("", "clusterset-dns-demo-")
	if err != nil {
		return nil, nil, err
	}
	stop = func() error {
		for _, each := range planes {
			each.stop()
		}
		return os.RemoveAll(root)
	}
	for i, name := range names {
		started, err := newPlane(ctx, name, filepath.Join(root, name), byte(i))
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("start the model of %s: %w", name, err), stop())
		}
		planes = append(planes, started)
	}
	return planes, stop, nil
}

// newPlane starts a plane with a unique number. The third plane has the same pod and Service ranges as the first.
func newPlane(ctx context.Context, name, directory string, number byte) (*Plane, error) {
	ranges := number % 2
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	token := rand.Text()
	api := apiserver.New(apiserver.Options{
		Name: name, Administrator: token,
		ServiceCIDRs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 160 + ranges}), 16)},
	})
	server := httptest.NewUnstartedServer(api)
	server.EnableHTTP2, server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	server.StartTLS()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &Plane{
		name: name, directory: directory,
		config: &rest.Config{
			Host: server.URL, BearerToken: token, QPS: -1,
			TLSClientConfig: rest.TLSClientConfig{
				CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
		},
		stop: func() {
			cancel()
			server.CloseClientConnections() // ends watches
			server.Close()
		},
	}
	var err error
	p.kube, err = kubernetes.NewForConfig(p.config)
	if err == nil {
		p.dynamic, err = dynamic.NewForConfig(p.config)
	}
	if err == nil {
		err = clusterset.Apply(ctx, p, []byte(clusterset.CRDs))
	}
	if err == nil {
		err = play(running, api, p, netip.AddrFrom4([4]byte{10, 64 + ranges}), netip.AddrFrom4([4]byte{192, 0, 2, 10 * number}))
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// WriteKubeconfig writes the administrator's kubeconfig for the planes, with a context for each.
func WriteKubeconfig(path string, planes ...*Plane) error {
	config := clientcmdapi.NewConfig()
	for _, p := range planes {
		pki.Add(config, p.name, p.config.Host, p.config.CAData, p.config.BearerToken, "")
	}
	return clientcmd.WriteToFile(*config, path)
}

// ServiceAccountKubeconfig returns a kubeconfig with a token of a service account.
func (p *Plane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	token, err := pki.Token(ctx, p.kube, namespace, name, pki.Lifetime)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", p.name, err)
	}
	return pki.Kubeconfig(p.name, p.config.Host, p.config.CAData, token, "")
}
