// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestOwnAddressesAreRefused: west exports addresses of a node and of the API server of east, one of them before east has
// it. No client in east is led there, and the others of the service stay.
func TestOwnAddressesAreRefused(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		west.Serve("web", false, "10.65.0.1", "192.168.1.10", "203.0.113.1", "203.0.113.2")
		west.Export("web")
		expect(t, east, map[string]string{
			"web": "west/10.65.0.1 west/192.168.1.10 west/203.0.113.1 west/203.0.113.2 -> VIP",
		})
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node"},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: "node"},
				{Type: corev1.NodeInternalIP, Address: "192.168.1.10"},
				{Type: corev1.NodeExternalIP, Address: "203.0.113.1"},
			}},
		}
		created, err := east.Kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		must(t, err)
		created.Status = node.Status
		_, err = east.Kube.CoreV1().Nodes().UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		must(t, err)
		sim.Wait(10 * time.Second)
		expect(t, east, map[string]string{"web": "west/10.65.0.1 west/203.0.113.2 -> VIP"})
		_, err = east.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"203.0.113.2"}}},
		}, metav1.CreateOptions{})
		must(t, err)
		sim.Wait(10 * time.Second)
		expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})
	})
}
