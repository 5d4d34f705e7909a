// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// A server is where the API server reaches the kubelets. It forwards ports, and has logs.
type server struct {
	http *http.Server
}

// serve starts the server, and has all nodes say that theirs is there.
func (k *Kubelet) serve(ctx context.Context) (*server, error) {
	// The API server does not look whose certificate it is, unless it is told to.
	certificate, err := tls.LoadX509KeyPair(filepath.Join(k.Cluster.Directory(), "apiserver.crt"),
		filepath.Join(k.Cluster.Directory(), "apiserver.key"))
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /portForward/{namespace}/{name}", k.forward)
	mux.HandleFunc("GET /containerLogs/{namespace}/{name}/{container}", func(response http.ResponseWriter, request *http.Request) {
		http.ServeFile(response, request, k.logFile(request.PathValue("namespace"), request.PathValue("name")))
	})
	s := &server{http: &http.Server{Handler: mux, ReadHeaderTimeout: requestTimeout}}
	k.group.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			k.failed(err)
		}
	})
	address := netip.MustParseAddrPort(listener.Addr().String())
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"addresses": []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.Addr().String()}},
		"daemonEndpoints": corev1.NodeDaemonEndpoints{
			KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(address.Port())},
		},
	}})
	if err != nil {
		return s, err
	}
	for name := range k.nodes {
		if _, err := k.Cluster.Client().CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{}, "status"); err != nil {
			return s, fmt.Errorf("node %s: %w", name, err)
		}
	}
	return s, nil
}

// Close ends the server and all that it forwards. On nil it does nothing.
func (s *server) Close() error {
	if s == nil {
		return nil
	}
	return s.http.Close()
}

const (
	// streamTimeout is how long a client may take to make the streams of a connection.
	streamTimeout = 10 * time.Second
	// idleTimeout is how long nothing may be forwarded.
	idleTimeout = time.Minute
)

func (k *Kubelet) forward(response http.ResponseWriter, request *http.Request) {
	p := k.find(request.PathValue("namespace"), request.PathValue("name"))
	if p == nil {
		http.NotFound(response, request)
		return
	}
	ForwardPorts(response, request, p.dial)
}

// Dial connects to a port of a pod.
type Dial func(ctx context.Context, port int32) (net.Conn, error)

// ForwardPorts serves the request of a port-forward to a pod.
func ForwardPorts(response http.ResponseWriter, request *http.Request, dial Dial) {
	portforward.ServePortForward(response, request, dial, request.PathValue("name"), "", nil, idleTimeout,
		streamTimeout, portforward.SupportedProtocols)
}

// PortForward copies between a stream and a port of the pod, until one side ends.
func (d Dial) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	connection, err := d(ctx, port)
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
