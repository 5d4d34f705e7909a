// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// ports: what is behind a port of the import are the endpoints of the clusters whose Service has it (KEP-1645, Service
// Port).
func ports(t *testing.T, b *bed) {
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	serve := []string{"tcp:8080", "tcp:8081", "udp:8080", "udp:8081"}
	type reach struct {
		network string
		number  int
		by      string // clusters; empty: nobody
	}
	for _, test := range []struct {
		name       string
		east, west []corev1.ServicePort
		want       []reach
	}{
		{
			"same name, different numbers: the oldest export's",
			[]corev1.ServicePort{port("http", tcp, 80, 8080)},
			[]corev1.ServicePort{port("http", tcp, 8888, 8080)},
			[]reach{{"tcp4", 80, "east"}, {"tcp4", 8888, ""}},
		},
		{
			"different names, one number",
			[]corev1.ServicePort{port("http", tcp, 80, 8080)},
			[]corev1.ServicePort{port("web", tcp, 80, 8080)},
			[]reach{{"tcp4", 80, "both"}},
		},
		{
			"TCP and UDP on one number",
			[]corev1.ServicePort{port("dns", udp, 53, 8080), port("dns-tcp", tcp, 53, 8080)},
			[]corev1.ServicePort{port("dns", udp, 53, 8080), port("dns-tcp", tcp, 53, 8080)},
			[]reach{{"tcp4", 53, "both"}, {"udp4", 53, "both"}},
		},
		{
			"an unnamed port",
			[]corev1.ServicePort{port("", tcp, 80, 8080)},
			[]corev1.ServicePort{port("", tcp, 80, 8080)},
			[]reach{{"tcp4", 80, "both"}},
		},
		{
			"different targets",
			[]corev1.ServicePort{port("http", tcp, 80, 8080)},
			[]corev1.ServicePort{port("http", tcp, 80, 8081)},
			[]reach{{"tcp4", 80, "both"}},
		},
		{
			"a port that one cluster has alone",
			[]corev1.ServicePort{port("http", tcp, 80, 8080)},
			[]corev1.ServicePort{
				port("http", tcp, 80, 8080), port("metrics", tcp, 9090, 8081), port("stats", udp, 8125, 8081),
			},
			[]reach{{"tcp4", 80, "both"}, {"tcp4", 9090, "west"}, {"udp4", 8125, "west"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := service{namespace: b.namespace(t), name: "many", ports: test.east}
			backends := map[string][]*pod{"east": b.east.deploy(t, s, 1, serve...)}
			b.awaitOlder(t, s)
			s.ports = test.west
			backends["west"] = b.west.deploy(t, s, 1, serve...)
			backends["both"] = slices.Concat(backends["east"], backends["west"])
			client := b.north.client(t, s.namespace, 0)
			for _, want := range test.want {
				if want.by == "" {
					counted, err := client.tryConnect(t.Context(), 5, want.network, s.at(want.number))
					must(t, err)
					if counted.Answered() > 0 {
						t.Errorf("%s %d: %s", want.network, want.number, counted)
					}
					continue
				}
				counted := client.reaches(t, 100, want.network, s.at(want.number), backends[want.by]...)
				b.figures.add("ports: "+test.name+", "+want.network, counted, "")
			}
		})
	}
}
