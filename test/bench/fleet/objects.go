// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"
)

// PerSlice is the number of endpoints of a full slice, as in the EndpointSlice controller.
const PerSlice = 100

// A Client is a client of an API server without a rate limit of its own.
type Client struct {
	kubernetes.Interface
	MCS mcsclient.Interface
}

// NewClient returns a Client without a rate limit.
func NewClient(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	kube, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return nil, err
	}
	mcs, err := mcsclient.NewForConfig(config)
	return &Client{kube, mcs}, err
}

// Namespaces creates the namespaces that do not exist.
func (c *Client) Namespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// Move sets the address of a slice's first endpoint and writes the slice, with the time of the change in an annotation.
func (c *Client) Move(ctx context.Context, slice *discoveryv1.EndpointSlice, annotation string, address netip.Addr) error {
	slice.Endpoints[0].Addresses = []string{address.String()}
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, annotation, time.Now().UTC().Format(time.RFC3339Nano))
	_, err := c.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
	return err
}

// NewService returns a Service without a selector.
func NewService(namespace, name string, headless bool) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "sql", Port: 5432, Protocol: corev1.ProtocolTCP}}},
	}
	if headless {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return service
}

// Slices returns the slices of a Service as the EndpointSlice controller would write them. The endpoints have
// consecutive addresses and, if the Service is headless, hostnames as pods of a StatefulSet have.
func Slices(service *corev1.Service, cluster string, first uint32, count int) (slices []*discoveryv1.EndpointSlice) {
	for begin := 0; begin < count; begin += PerSlice {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%05d", service.Name, begin), Namespace: service.Namespace,
				Labels: map[string]string{
					discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "bench.clusterset-dns.github.io",
				},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{
				{Name: new("sql"), Port: new(int32(5432)), Protocol: new(corev1.ProtocolTCP)},
			},
		}
		for i := begin; i < min(begin+PerSlice, count); i++ {
			endpoint := discoveryv1.Endpoint{
				Addresses:  []string{Address(first + uint32(i)).String()},
				Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
				Zone:       new(cluster + "-" + string(rune('a'+i%3))),
				NodeName:   new(fmt.Sprintf("node-%d", i%10)),
				TargetRef: &corev1.ObjectReference{
					Kind: "Pod", Namespace: service.Namespace, Name: fmt.Sprintf("%s-%d", service.Name, i),
				},
			}
			if service.Spec.ClusterIP == corev1.ClusterIPNone {
				endpoint.Hostname = new(Host(i))
			}
			slice.Endpoints = append(slice.Endpoints, endpoint)
		}
		slices = append(slices, slice)
	}
	return slices
}

// Host returns the hostname of an endpoint.
func Host(endpoint int) string { return fmt.Sprintf("db-%d", endpoint) }

// Address returns an address in 10.0.0.0/8.
func Address(number uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(number >> 16), byte(number >> 8), byte(number)})
}
