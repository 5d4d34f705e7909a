// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// dictionary is what most slices have in common. It is only in memory: another one may replace it at any time.
var dictionary = sync.OnceValue(func() *s2.Dict {
	encoded, err := example().Marshal()
	if err != nil {
		panic(fmt.Sprintf("export: the example cannot be encoded: %v", err))
	}
	return s2.MakeDict(encoded, nil)
})

// example is a slice as this controller writes it. Its values do not matter: they only fill the dictionary.
func example() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-cluster-1-abcdefghij", Namespace: "default", UID: "8f9c2b1e-7d53-4a60-9e18-c0f4a6b2d375",
			ResourceVersion: "1000000", Generation: 1, CreationTimestamp: metav1.Unix(1.7e9, 0),
			Labels: map[string]string{
				"endpointslice.kubernetes.io/managed-by": "clusterset-controller.clusterset-dns.github.io",
				"kubernetes.io/service-name":             "derived-0123456789", "service.kubernetes.io/headless": "",
				"multicluster.kubernetes.io/service-name":   "web",
				"multicluster.kubernetes.io/source-cluster": "cluster-1",
			},
			Annotations: map[string]string{
				"clusterset-dns.github.io/last-change-trigger-time": "2026-01-01T00:00:00.000000000Z",
				"snapshot.clusterset-dns.github.io/v1": `{"cluster":"cluster-1","service":{"created":` +
					`"2026-01-01T00:00:00Z","type":"ClusterSetIP","ports":[{"name":"http","protocol":"TCP","port":80}],` +
					`"ipFamilies":["IPv4"],"sessionAffinity":"None","internalTrafficPolicy":"Cluster"},"slice":{"name":` +
					`"web-abcdefghij","targets":[{"protocol":"TCP","port":80,"target":8080}]}}`,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceImport", Name: "web",
				UID: "8f9c2b1e-7d53-4a60-9e18-c0f4a6b2d375", Controller: ptr.To(true),
			}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr.To("http"), Protocol: ptr.To[corev1.Protocol]("TCP"), Port: ptr.To[int32](8080)},
		},
	}
	for _, address := range []string{"10.0.0.1", "10.0.0.2"} {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Hostname: ptr.To("web-1"), Zone: ptr.To("zone-1a"),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
		})
	}
	return slice
}

// buffers are scratch memory, each a pointer to bytes.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func takeBuffer() *[]byte {
	taken, _ := buffers.Get().(*[]byte)
	return taken
}
