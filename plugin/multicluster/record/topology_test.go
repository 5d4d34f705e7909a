// SPDX-License-Identifier: Apache-2.0

package record

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestPlaces compares Place with a search of all prefixes. The order of nodes does not matter.
func TestPlaces(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		random := func() netip.Addr {
			if r.IntN(2) == 0 {
				return netip.AddrFrom4([4]byte{
					byte(r.IntN(2)) * 255, byte(r.IntN(2)) * 255, byte(r.IntN(4)),
					byte(r.IntN(256)),
				})
			}
			return netip.AddrFrom16([16]byte{byte(r.IntN(2)) * 255, 15: byte(r.IntN(256))})
		}
		var nodes []Node
		for range r.IntN(6) {
			node := Node{Zone: []string{"", "a", "b", "c"}[r.IntN(4)]}
			for range r.IntN(4) {
				addr := random()
				node.Prefixes = append(node.Prefixes, netip.PrefixFrom(addr, r.IntN(addr.BitLen()+1)).Masked())
			}
			nodes = append(nodes, node)
		}
		topology := NewTopology(nodes)
		for range 50 {
			client := random()
			want, longest := "", -1
			for _, node := range nodes {
				for _, prefix := range node.Prefixes {
					if node.Zone == "" || !prefix.Contains(client) || prefix.Bits() < longest {
						continue
					}
					if prefix.Bits() > longest {
						want = ""
					}
					want, longest = max(want, node.Zone), prefix.Bits()
				}
			}
			if got := topology.Place(client).zone; got != want {
				t.Fatalf("seed %d, client %s: got %q, want %q; nodes %v", seed, client, got, want, nodes)
			}
		}
	}
}
