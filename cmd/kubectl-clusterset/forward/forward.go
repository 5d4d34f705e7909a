// SPDX-License-Identifier: Apache-2.0

// Package forward reaches ports of pods through the API server.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// Open forwards a port of 127.0.0.1 to one of a pod, until stop, which waits for
// the end. address is that of the local port.
func Open(ctx context.Context, c *cluster.Cluster, namespace, pod string, port int32) (address string, stop func(),
	err error,
) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("forward a port to pod %s/%s: %w", namespace, pod, err)
		}
	}()
	url := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource(
		"portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return "", nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, c.Config)
	if err != nil {
		return "", nil, err
	}
	// As kubectl does: SPDY if the API server does not support WebSockets.
	dialer := portforward.NewFallbackDialerForStreaming(websocket,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
	ending, ready := make(chan struct{}), make(chan struct{})
	ports := []string{":" + strconv.Itoa(int(port))}
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, ports, ending, ready,
		io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	ended, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		ended <- forwarder.ForwardPorts()
	}()
	select {
	case <-ctx.Done():
		close(ending)
		return "", nil, ctx.Err()
	case err := <-ended:
		if err == nil {
			err = errors.New("it was closed immediately")
		}
		return "", nil, err
	case <-ready:
	}
	local, err := forwarder.GetPorts()
	if err == nil && len(local) == 0 {
		err = errors.New("it has no local port")
	}
	if err != nil {
		close(ending)
		return "", nil, err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(local[0].Local))), func() {
		close(ending)
		<-done // whatever ended it
	}, nil
}
