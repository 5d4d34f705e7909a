// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// ports: what is behind a port of the import are the endpoints of the clusters whose Service has it (KEP-1645, Service
// Port). The export of east is the older one.
func ports(t *testing.T, b *bed) {
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	serve := []string{"tcp:8080", "tcp:8081", "udp:8080", "udp:8081"}
	s := service{namespace: b.namespace(t), name: "many", ports: []corev1.ServicePort{
		port("dns", udp, 53, 8080), port("dns-tcp", tcp, 53, 8080), port("http", tcp, 80, 8080), port("web", tcp, 81, 8080),
		port("api", tcp, 82, 8080),
	}}
	east := b.east.deploy(t, s, 1, serve...)
	b.awaitOlder(t, s)
	s.ports = []corev1.ServicePort{
		port("dns", udp, 53, 8080), port("dns-tcp", tcp, 53, 8080), port("http", tcp, 80, 8081), port("www", tcp, 81, 8080),
		port("api", tcp, 8888, 8080), port("metrics", tcp, 9090, 8081), port("stats", udp, 8125, 8081),
	}
	west := b.west.deploy(t, s, 1, serve...)
	both := slices.Concat(east, west)
	client := b.north.client(t, s.namespace, 0)
	for _, test := range []struct {
		why, network string
		number       int
		by           []*pod
	}{
		{"UDP and TCP on one number", "udp4", 53, both},
		{"UDP and TCP on one number", "tcp4", 53, both},
		{"different targets", "tcp4", 80, both},
		{"different names, one number", "tcp4", 81, both},
		{"one name, different numbers: the oldest export's", "tcp4", 82, east},
		{"one name, different numbers: the other one", "tcp4", 8888, nil},
		{"one cluster has it alone", "tcp4", 9090, west},
		{"one cluster has it alone", "udp4", 8125, west},
	} {
		t.Run(fmt.Sprintf("%s, %s", test.why, test.network), func(t *testing.T) {
			if test.by != nil {
				client.reaches(t, 100, test.network, s.at(test.number), test.by...)
				return
			}
			counted, err := client.tryConnect(t.Context(), 5, test.network, s.at(test.number))
			must(t, err)
			if counted.Answered() > 0 {
				t.Errorf("port %d: %s", test.number, counted)
			}
		})
	}
}
