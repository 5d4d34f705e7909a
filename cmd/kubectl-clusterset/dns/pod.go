// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/forward"
)

// Selector finds the pods of the cluster's DNS in kube-system, as kubeadm and
// most others label them.
const Selector = "k8s-app=kube-dns"

// defaultPort is that of pods that declare none.
const defaultPort = 53

// InCluster is a pod of the cluster's DNS. Queries go over TCP through a
// port-forward.
func InCluster(ctx context.Context, c *cluster.Cluster) (*Server, error) {
	pods, err := c.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: Selector})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return isReady(&pod) })
	if at < 0 {
		return nil, fmt.Errorf("no pod with the label %s is ready in namespace %s: set the address of the cluster's DNS "+
			"with --dns", Selector, metav1.NamespaceSystem)
	}
	server, err := forwarded(ctx, c, &pods.Items[at])
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: set the address of the cluster's DNS with --dns", err)
	}
	return server, err
}

// Pods are all ready pods with labels, at least one, as InCluster has them. The caller closes those that are returned
// together with an error, too.
func Pods(ctx context.Context, c *cluster.Cluster, namespace string, labels map[string]string) ([]*Server, error) {
	selector := metav1.FormatLabelSelector(metav1.SetAsLabelSelector(labels))
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var servers []*Server
	for i := range pods.Items {
		if !isReady(&pods.Items[i]) {
			continue
		}
		server, err := forwarded(ctx, c, &pods.Items[i])
		if err != nil {
			return servers, err
		}
		servers = append(servers, server)
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("no pod with the labels %s is ready in namespace %s", selector, namespace)
	}
	return servers, nil
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

// forwarded is the DNS server of a pod, through a port-forward that Close ends.
func forwarded(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod) (*Server, error) {
	address, stop, err := forward.Open(ctx, c, pod.Namespace, pod.Name, dnsPort(pod))
	if err != nil {
		return nil, err
	}
	return &Server{
		Name: "pod " + pod.Namespace + "/" + pod.Name, network: "tcp", address: address, timeout: defaultTimeout,
		close: stop,
	}, nil
}
