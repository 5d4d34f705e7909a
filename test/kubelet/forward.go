// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// serve starts the server at which the API server reaches the kubelets, and publishes its address in all nodes. The
// server forwards ports and serves logs.
func (k *Kubelet) serve() {
	k.t.Helper()
	// The API server does not verify the certificate of kubelets by default.
	certificate, err := tls.LoadX509KeyPair(filepath.Join(k.Cluster.Directory(), "apiserver.crt"),
		filepath.Join(k.Cluster.Directory(), "apiserver.key"))
	controlplanetest.Must(k.t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	controlplanetest.Must(k.t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /portForward/{namespace}/{name}", k.forward)
	mux.HandleFunc("GET /containerLogs/{namespace}/{name}/{container}", func(response http.ResponseWriter, request *http.Request) {
		http.ServeFile(response, request, k.logFile(request.PathValue("namespace"), request.PathValue("name")))
	})
	k.server = http.Server{Handler: mux, ReadHeaderTimeout: requestTimeout}
	k.group.Go(func() {
		if err := k.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			k.t.Errorf("the kubelets of %s: %v", k.Cluster.Name(), err)
		}
	})
	address := netip.MustParseAddrPort(listener.Addr().String())
	patch := fmt.Appendf(nil, `{"status":{"addresses":[{"type":"InternalIP","address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`,
		address.Addr(), address.Port())
	for name := range k.next {
		_, err := k.Cluster.Client().CoreV1().Nodes().Patch(k.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		controlplanetest.Must(k.t, err)
	}
}

const (
	// streamTimeout limits the time for a client to create the streams of a connection.
	streamTimeout = 10 * time.Second
	// idleTimeout limits the time without forwarded data.
	idleTimeout = time.Minute
)

func (k *Kubelet) forward(response http.ResponseWriter, request *http.Request) {
	p := k.find(request.PathValue("namespace"), request.PathValue("name"))
	if p == nil {
		http.NotFound(response, request)
		return
	}
	portforward.ServePortForward(response, request, p, request.PathValue("name"), "", nil, idleTimeout,
		streamTimeout, portforward.SupportedProtocols)
}

// PortForward copies between a stream and a port of the pod's loopback interface, until one side ends.
func (p *pod) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	connection, err := p.dial(ctx, port)
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		_, _ = io.Copy(connection, stream)
		_ = connection.Close()
	}()
	_, err = io.Copy(stream, connection)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
