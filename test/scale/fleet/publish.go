// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
)

// created is when the first member exported its services; the others follow a minute apart.
var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// published are the slices that a member publishes for a service, of which it is the given one of the exporters.
func (s Shape) published(cluster string, service, part int) ([]*discoveryv1.EndpointSlice, error) {
	object := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(service), Namespace: namespaceOf(service)},
		Spec: corev1.ServiceSpec{
			ClusterIP:  corev1.ClusterIPNone,
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:      []corev1.ServicePort{{Name: "sql", Port: 5432, Protocol: corev1.ProtocolTCP}},
		},
	}
	if !headless(service) {
		object.Spec.ClusterIP = "10.96.0.10"
	}
	var slices []*discoveryv1.EndpointSlice
	for first := 0; first < s.Part(); first += perSlice {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%05d", object.Name, first), Namespace: object.Namespace,
				Labels: map[string]string{
					discoveryv1.LabelServiceName: object.Name,
					discoveryv1.LabelManagedBy:   "endpointslice-controller.k8s.io",
				},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{
				{Name: ptr.To("sql"), Port: ptr.To[int32](5432), Protocol: ptr.To(corev1.ProtocolTCP)},
			},
		}
		for i := first; i < min(first+perSlice, s.Part()); i++ {
			number := (service*s.Spread+part)*s.Part() + i
			endpoint := discoveryv1.Endpoint{
				Addresses: []string{address(uint32(number)).String()},
				Conditions: discoveryv1.EndpointConditions{
					Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false),
				},
				Zone:     ptr.To(cluster + "-" + string(rune('a'+i%3))),
				NodeName: ptr.To(fmt.Sprintf("node-%d", i%10)),
				TargetRef: &corev1.ObjectReference{
					Kind: "Pod", Namespace: object.Namespace, Name: fmt.Sprintf("%s-%d", object.Name, i),
				},
			}
			if headless(service) {
				endpoint.Hostname = ptr.To(host(i))
			}
			slice.Endpoints = append(slice.Endpoints, endpoint)
		}
		slices = append(slices, slice)
	}
	return objects.Publish(cluster, created.Add(time.Duration(part)*time.Minute), object, slices)
}

// host is the hostname of an endpoint, as of a pod of a StatefulSet.
func host(endpoint int) string { return fmt.Sprintf("db-%d", endpoint) }
