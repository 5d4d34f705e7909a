// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forward forwards a local port to a port of a pod until stop, which waits for the end. address has the local port. It fails
// if the connection takes longer than forwardTimeout.
func (c *Cluster) Forward(ctx context.Context, namespace, pod string, port int32) (address string, stop func(), err error) {
	defer func() {
		if err != nil && !errors.Is(err, context.Canceled) {
			err = fmt.Errorf("forward a port to pod %s/%s: %w", namespace, pod, err)
		}
	}()
	url := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	websocket, failed := portforward.NewSPDYOverWebsocketDialerForStreaming(url, c.Config)
	if err = errors.Join(err, failed); err != nil {
		return "", nil, err
	}
	// As kubectl does: SPDY if the API server does not support WebSockets.
	dialer := portforward.NewFallbackDialerForStreaming(websocket,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	ending, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf(":%d", port)},
		ending, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	var local []portforward.ForwardedPort
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-ended: // it never is nil before ending is closed
	case <-ready:
		local, err = forwarder.GetPorts()
	}
	if err != nil {
		close(ending)
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", local[0].Local), func() {
		close(ending)
		<-ended //nolint:errcheck // whatever ended it
	}, nil
}

// PortOf returns the named port of a pod, or otherwise if the pod declares none.
func PortOf(pod *corev1.Pod, name string, otherwise int32) int32 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == name {
				return port.ContainerPort
			}
		}
	}
	return otherwise
}
