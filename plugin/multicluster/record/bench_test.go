// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// The benchmarks of this file grow one size at a time. Time per operation divided by the size may grow as its logarithm
// does, and not faster.

// load describes a large headless service.
type load struct {
	endpoints int
	host      func(i int) string // of the ith endpoint; nil: none
	cluster   func(slice int) string
	ports     func(slice int) []discoveryv1.EndpointPort
}

// perSlice is the number of endpoints in each slice.
const perSlice = 100

func address4(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func inEast(int) string { return "east" }

func portsOf(numbers ...int) []discoveryv1.EndpointPort {
	ports := make([]discoveryv1.EndpointPort, len(numbers))
	for i, n := range numbers {
		ports[i] = discoveryv1.EndpointPort{Name: new(fmt.Sprintf("p%d", n)), Port: new(int32(1000 + n))}
	}
	return ports
}

func onePort(int) []discoveryv1.EndpointPort { return portsOf(0) }

// manyPorts are so many ports.
func manyPorts(count int) []discoveryv1.EndpointPort {
	numbers := make([]int, count)
	for i := range numbers {
		numbers[i] = i
	}
	return portsOf(numbers...)
}

// objects are the import, which declares all ports of the slices, and the slices.
func (l load) objects() (*object.Import, []*object.Endpoints) {
	declared := map[string]mcsv1beta1.ServicePort{}
	var all []*object.Endpoints
	for start := 0; start < l.endpoints; start += perSlice {
		raw := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{mcsv1beta1.LabelSourceCluster: l.cluster(
				start / perSlice)}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       l.ports(start / perSlice),
		}
		for _, port := range raw.Ports {
			declared[*port.Name] = mcsv1beta1.ServicePort{Name: *port.Name, Port: *port.Port}
		}
		for i := start; i < min(start+perSlice, l.endpoints); i++ {
			endpoint := discoveryv1.Endpoint{Addresses: []string{address4(i).String()}}
			if l.host != nil {
				endpoint.Hostname = new(l.host(i))
			}
			raw.Endpoints = append(raw.Endpoints, endpoint)
		}
		all = append(all, object.FromEndpointSlice(raw, false))
	}
	spec := mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless}
	for _, port := range declared {
		spec.Ports = append(spec.Ports, port)
	}
	return object.FromServiceImport(&mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "demo"}, Spec: spec,
	}), all
}

// benchmarkBuild measures building the service.
func benchmarkBuild(b *testing.B, l load) {
	imported, all := l.objects()
	b.ReportAllocs()
	for b.Loop() {
		record.Build(config, imported, all)
	}
}

// benchmarkQuery measures one query over UDP.
func benchmarkQuery(b *testing.B, l load, qtype uint16) {
	imported, all := l.objects()
	snapshot := snapshotOf(record.Build(config, imported, all))
	const qname = "db.demo.svc." + zone
	q := record.Question{
		Name: qname, Request: record.Parse(strings.TrimSuffix(qname, "."+zone)), Type: qtype,
	}
	client := record.Client{Size: 1232 - 11, Point: 77}
	b.ReportAllocs()
	for b.Loop() {
		if lookup(snapshot, q, client).Result != record.Found {
			b.Fatal("no answer")
		}
	}
}

// BenchmarkPorts is one endpoint with many ports.
func BenchmarkPorts(b *testing.B) {
	for _, count := range []int{10, 1000, 4000, 16000} {
		l := load{
			endpoints: 1, cluster: inEast,
			ports: func(int) []discoveryv1.EndpointPort { return manyPorts(count) },
		}
		b.Run(fmt.Sprintf("build %d", count), func(b *testing.B) { benchmarkBuild(b, l) })
		b.Run(fmt.Sprintf("SRV %d", count), func(b *testing.B) { benchmarkQuery(b, l, dns.TypeSRV) })
	}
}

// BenchmarkHostnamesLikeAddresses is of endpoints with the labels of other addresses for hostnames.
func BenchmarkHostnamesLikeAddresses(b *testing.B) {
	for _, count := range []int{1000, 4000, 16000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			benchmarkBuild(b, load{endpoints: count, cluster: inEast, ports: onePort, host: func(i int) string {
				return strings.ReplaceAll(address4(1<<20+i).String(), ".", "-")
			}})
		})
	}
}

// BenchmarkClusters is of endpoints in many clusters, or with many port numbers, one for each slice.
func BenchmarkClusters(b *testing.B) {
	for _, count := range []int{1, 20, 200, 1000} {
		clusters := load{
			endpoints: perSlice * count,
			cluster:   func(slice int) string { return fmt.Sprintf("c%d", slice) }, ports: onePort,
		}
		numbers := load{
			endpoints: perSlice * count, cluster: inEast,
			ports: func(slice int) []discoveryv1.EndpointPort { return portsOf(slice) },
		}
		b.Run(fmt.Sprintf("build %d clusters", count), func(b *testing.B) { benchmarkBuild(b, clusters) })
		b.Run(fmt.Sprintf("build %d port numbers", count), func(b *testing.B) { benchmarkBuild(b, numbers) })
		b.Run(fmt.Sprintf("A %d clusters", count), func(b *testing.B) { benchmarkQuery(b, clusters, dns.TypeA) })
		b.Run(fmt.Sprintf("SRV %d port numbers", count), func(b *testing.B) { benchmarkQuery(b, numbers, dns.TypeSRV) })
	}
}

// BenchmarkFirstList publishes many services at once.
func BenchmarkFirstList(b *testing.B) {
	for _, count := range []int{1000, 11000, 100000} {
		changes := make([]Change, count)
		for i := range changes {
			imported := object.FromServiceImport(&mcsv1beta1.ServiceImport{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Namespace: "demo"},
				Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, IPs: []string{"10.42.0.1"}},
			})
			changes[i] = Change{Key: imported.Key, Service: record.Build(config, imported, nil)}
		}
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				update(record.NewIndex(config), 1, changes...)
			}
		})
	}
}
