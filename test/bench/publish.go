// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
)

// publish makes the slices that a cluster publishes of a service.
func publish(cluster string, name types.NamespacedName, created time.Time, endpoints int,
	addresses *objects.Set,
) ([]*discoveryv1.EndpointSlice, error) {
	exports := objects.Exports{Set: objects.Set{Namespace: name.Namespace}}
	exports.Headless(endpoints)
	service := exports.Services[0]
	service.Name = name.Name
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	for _, slice := range exports.Slices {
		slice.Labels[discoveryv1.LabelServiceName] = name.Name
		for i := range slice.Endpoints {
			slice.Endpoints[i].Addresses = []string{addresses.NextAddress().String()}
		}
	}
	return objects.Publish(cluster, created, service, exports.Slices)
}

// publishAll makes what clusters called member-<i> publish of a service, with the endpoints spread over them.
func publishAll(name types.NamespacedName, clusters, endpoints int,
	addresses *objects.Set,
) (all []*discoveryv1.EndpointSlice, err error) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range clusters {
		part := endpoints*(i+1)/clusters - endpoints*i/clusters
		slices, err := publish(fmt.Sprintf("member-%d", i), name, created.Add(time.Duration(i)*time.Minute), part,
			addresses)
		if err != nil {
			return nil, err
		}
		all = append(all, slices...)
	}
	return all, nil
}
