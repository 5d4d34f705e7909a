// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// Selector finds the pods of the cluster's DNS in kube-system, as kubeadm and
// most others label them.
const Selector = "k8s-app=kube-dns"

// defaultPort is that of DNS in a pod that does not name one.
const defaultPort = 53

// InCluster is a pod of the cluster's DNS, which is asked over TCP through a
// port-forward.
func InCluster(ctx context.Context, c *cluster.Cluster) (*Server, error) {
	pods, err := c.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: Selector})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return isReady(&pod) })
	if at < 0 {
		return nil, fmt.Errorf("no pod with the label %s is ready in namespace %s: name the address of the cluster's DNS with --dns", Selector, metav1.NamespaceSystem)
	}
	return forward(ctx, c, &pods.Items[at])
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions,
		func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
}

// dnsPort is the port on which a pod serves DNS over TCP.
func dnsPort(pod *corev1.Pod) int32 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == "dns-tcp" {
				return port.ContainerPort
			}
		}
	}
	return defaultPort
}

// forward opens a way to a pod. It is given up by Close.
func forward(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod) (*Server, error) {
	name := "pod " + pod.Namespace + "/" + pod.Name
	url := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource(
		"portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return nil, fmt.Errorf("forward a port to %s: %w", name, err)
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, c.Config)
	if err != nil {
		return nil, fmt.Errorf("forward a port to %s: %w", name, err)
	}
	// As kubectl does: SPDY where the API server does not know the other.
	dialer := portforward.NewFallbackDialerForStreaming(websocket,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
	stop, ready := make(chan struct{}), make(chan struct{})
	ports := []string{":" + strconv.Itoa(int(dnsPort(pod)))}
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, ports, stop, ready,
		io.Discard, io.Discard)
	if err != nil {
		return nil, fmt.Errorf("forward a port to %s: %w", name, err)
	}
	ended, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		ended <- forwarder.ForwardPorts()
	}()
	select {
	case <-ctx.Done():
		close(stop)
		return nil, ctx.Err()
	case err := <-ended:
		if err == nil {
			err = errors.New("it ended at once")
		}
		return nil, fmt.Errorf("forward a port to %s: %w: name the address of the cluster's DNS with --dns", name, err)
	case <-ready:
	}
	local, err := forwarder.GetPorts()
	if err != nil || len(local) == 0 {
		close(stop)
		return nil, fmt.Errorf("forward a port to %s: no port: %w", name, err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(local[0].Local)))
	return &Server{Name: name, network: "tcp", address: address, timeout: defaultTimeout, close: func() {
		close(stop)
		<-done // whatever ended it
	}}, nil
}
