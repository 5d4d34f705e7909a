// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// preferCluster: all connections stay home while there is a ready pod at home, and go abroad while there is none. The
// pods do not only become unready: they die.
func preferCluster(t *testing.T, b *bed) {
	s := service{
		namespace: b.namespace(t), name: "near", ports: http80,
		annotations: map[string]string{"clusterset-dns.github.io/prefer": "cluster"},
	}
	east, west := b.east.deploy(t, s, 2), b.west.deploy(t, s, 2)
	for _, c := range b.all() {
		c.awaitEndpoints(t, s, 4)
	}
	first := map[*cluster]*pod{}
	for c, own := range map[*cluster][]*pod{b.east: east, b.west: west, b.north: slices.Concat(east, west)} {
		client := c.client(t, s.namespace, 0)
		first[c] = client
		client.settled(t, "tcp4", s.at(80), own...)
		b.figures.add("prefer cluster, from "+c.Name(), client.reaches(t, 1000, "tcp4", s.at(80), own...), "")
	}

	client := b.west.client(t, s.namespace, 1)
	watched := client.watch(t, "tcp4", s.at(80))
	watched.only(t, time.Now(), "west")
	// One of two is not the last.
	west[0].setReady(t, false)
	client.reaches(t, 200, "tcp4", s.at(80), west[1])
	west[0].server.stop(t)

	died := west[1].setReady(t, false)
	west[1].server.stop(t)
	away := watched.only(t, died, "east")
	// A client without refused connections: the conntrack entry of a refused connection keeps its pod for 10 s, and a new
	// connection from the same source port would be refused, too.
	abroad := first[b.west].reaches(t, 1000, "tcp4", s.at(80), east...)
	for _, p := range west {
		p.serve(t, "tcp:8080")
		p.setReady(t, true)
	}
	revived := time.Now()
	back := watched.only(t, revived, "west")
	home := client.reaches(t, 1000, "tcp4", s.at(80), west...)

	if counted := tally.New(watched.since(died.Add(away))...); counted.Lost() > 0 {
		t.Errorf("connections were lost after they had gone abroad: %s", counted)
	}
	b.figures.add("prefer cluster: the last pod of west died", abroad, "away after "+seconds(away))
	b.figures.add("prefer cluster: pods of west are ready again", home, "back after "+seconds(back))
	counted := tally.New(watched.since(died)...)
	b.figures.add("prefer cluster: from its death to the return", counted,
		fmt.Sprintf("%d lost, none after %s", counted.Lost(), seconds(away)))
}

// preferZone: trafficDistribution means in a set of clusters what it means in one. East has a node in zone a and one in
// b, west in b and c, north in c; each of the first two has a pod on each node.
func preferZone(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "zonal", ports: http80, change: func(s *corev1.Service) {
		distribution := corev1.ServiceTrafficDistributionPreferClose
		s.Spec.TrafficDistribution = &distribution
	}}
	east, west := b.east.deploy(t, s, 2), b.west.deploy(t, s, 2)
	for _, c := range b.all() {
		c.awaitEndpoints(t, s, 4)
	}
	for _, test := range []struct {
		cluster *cluster
		node    int
		want    []*pod
	}{
		{b.east, 0, []*pod{east[0]}},
		{b.east, 1, []*pod{east[1], west[0]}},
		{b.west, 0, []*pod{east[1], west[0]}},
		{b.west, 1, []*pod{west[1]}},
		{b.north, 0, []*pod{west[1]}},
	} {
		client := test.cluster.client(t, s.namespace, test.node)
		counted := client.reaches(t, 200, "tcp4", s.at(80), test.want...)
		b.figures.add(
			fmt.Sprintf("same zone, from zone %s of %s", zones[test.cluster.Name()][test.node], test.cluster.Name()),
			counted, "")
	}
}
