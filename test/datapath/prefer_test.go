// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"slices"
	"testing"
	"time"
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
	for c, own := range map[*cluster][]*pod{b.east: east, b.west: west, b.north: slices.Concat(east, west)} {
		c.client(t, s.namespace, 0).reaches(t, 1000, "tcp4", s.at(80), own...)
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
	for _, p := range west {
		p.serve(t, "tcp:8080")
		p.setReady(t, true)
	}
	back := watched.only(t, time.Now(), "west")
	client.reaches(t, 1000, "tcp4", s.at(80), west...)
	watched.intact(t, died.Add(away), fmt.Sprintf("abroad after %s, home after %s", seconds(away), seconds(back)))
}
