// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Canary has a replica answer probes at an address of the network, and probe those of others.
func (c *Cluster) Canary(address string) func(*controller.Options) {
	return func(options *controller.Options) {
		listener, err := c.network.Listen(address)
		c.must(err)
		options.Canary, options.DialCanary = listener, options.DialMember
	}
}

// OfferCanaries sets the canaries of the cluster, as the EndpointSlice controller does: "10.65.9.1=a" is one in a zone.
func (c *Cluster) OfferCanaries(canaries ...string) {
	c.t.Helper()
	client := c.Kube.DiscoveryV1().EndpointSlices(member.DefaultNamespace)
	ready, name, port, protocol := true, canary.Port, int32(8081), corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: canary.Service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: canary.Service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for _, each := range canaries {
		address, zone, _ := strings.Cut(each, "=")
		node := "node-of-" + address
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, Zone: &zone,
			NodeName: &node,
		})
	}
	_, err := client.Update(context.Background(), slice, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(context.Background(), slice, metav1.CreateOptions{})
	}
	c.must(err)
}
