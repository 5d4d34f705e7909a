// SPDX-License-Identifier: Apache-2.0

// Package objects makes what a cluster of a clusterset holds, in any size, and writes it to an API server fast.
package objects

import (
	"fmt"
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// PerSlice is how many endpoints a slice has, unless fewer are left.
const PerSlice = 10

// Clusters are those that the endpoints of a headless service come from, half of them from each.
var Clusters = [2]string{"east", "west"}

// Set are the objects of one namespace. Its objects belong to who made it.
type Set struct {
	Namespace string
	Imports   []*mcsv1beta1.ServiceImport
	Slices    []*discoveryv1.EndpointSlice

	addresses uint32 // how many were given to endpoints
}

// Name is the name in DNS of a service of the set, without the labels before it.
func (s *Set) Name(service string) string {
	return service + "." + s.Namespace + ".svc.clusterset.local."
}

// ClusterSetIP adds services called web-<i> with one IP and one port each.
func (s *Set) ClusterSetIP(count int) {
	for i := range count {
		s.Imports = append(s.Imports, &mcsv1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Namespace: s.Namespace},
			Spec: mcsv1beta1.ServiceImportSpec{
				Type:  mcsv1beta1.ClusterSetIP,
				IPs:   []string{netip.AddrFrom4([4]byte{10, 255, byte(i >> 8), byte(i)}).String()},
				Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}},
			},
		})
	}
}

// Headless adds a headless service with that many endpoints: one half in each cluster, and those of east with
// hostnames db-<i>, as of a StatefulSet.
func (s *Set) Headless(name string, endpoints int) {
	s.Imports = append(s.Imports, &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type:  mcsv1beta1.Headless,
			Ports: []mcsv1beta1.ServicePort{{Name: "sql", Protocol: "TCP", Port: 5432}},
		},
	})
	first := 0
	for _, cluster := range Clusters {
		last := endpoints
		if cluster != Clusters[len(Clusters)-1] {
			last = part(endpoints)
		}
		for ; first < last; first += PerSlice {
			s.addSlice(name, cluster, first, min(first+PerSlice, last))
		}
		first = last
	}
}

// part is how many of the endpoints the first cluster has: half of them, and whole slices where there are several.
func part(endpoints int) int {
	half := endpoints / len(Clusters)
	if endpoints < len(Clusters)*PerSlice {
		return half
	}
	return (half + PerSlice - 1) / PerSlice * PerSlice
}

// addSlice adds the slice with the endpoints of these numbers.
func (s *Set) addSlice(name, cluster string, first, last int) {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%s-%d", name, cluster, first), Namespace: s.Namespace,
			Labels: map[string]string{
				mcsv1beta1.LabelServiceName:      name,
				mcsv1beta1.LabelSourceCluster:    cluster,
				discoveryv1.LabelManagedBy:       "bench.clusterset-dns.github.io",
				"service.kubernetes.io/headless": "",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: new("sql"), Port: new(int32(5432)), Protocol: new(protocolTCP)},
		},
	}
	for i := first; i < last; i++ {
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{s.NextAddress().String()},
			Conditions: discoveryv1.EndpointConditions{
				Ready: new(true), Serving: new(true), Terminating: new(false),
			},
			Zone: new(cluster + "-a"),
		}
		if cluster == Clusters[0] {
			endpoint.Hostname = new(fmt.Sprintf("db-%d", i))
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	s.Slices = append(s.Slices, slice)
}

// NextAddress is one that no endpoint of the set has had.
func (s *Set) NextAddress() netip.Addr {
	s.addresses++
	n := s.addresses
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}
