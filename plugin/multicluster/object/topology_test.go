// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// nodesOf reads nodes, each as "zone/region prefix prefix".
func nodesOf(lines ...string) []Node {
	var nodes []Node
	for _, line := range lines {
		fields := strings.Fields(line)
		zone, region, _ := strings.Cut(fields[0], "/")
		node := Node{Zone: zone, Region: region}
		for _, prefix := range fields[1:] {
			node.Prefixes = append(node.Prefixes, netip.MustParsePrefix(prefix))
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func TestPlace(t *testing.T) {
	topology := NewTopology(nodesOf(
		"a/r 10.0.0.0/24 fd00:0:0:1::/64 192.0.2.7/32",
		"b/r 10.0.1.0/24 fd00:0:0:2::/64",
		"a/r 10.0.2.0/24",
		"c/s 10.0.1.128/25 10.0.1.130/32", // in that of b
		"/ 10.0.5.0/24",
		"d/ 255.255.255.0/24 ff00::/8",
	))
	for client, zone := range map[string]string{
		"10.0.0.0": "a", "10.0.0.255": "a", "::ffff:10.0.0.9": "a", "10.0.1.0": "b", "10.0.1.127": "b",
		"10.0.1.128": "c", "10.0.1.130": "c",
		"10.0.1.255": "c", "10.0.2.1": "a", "10.0.3.0": "", "10.0.5.1": "", "9.255.255.255": "", "0.0.0.0": "",
		"192.0.2.7": "a", "192.0.2.8": "",
		"fd00:0:0:1::9": "a", "fd00:0:0:2::9": "b", "fd00:0:0:3::9": "", "255.255.255.255": "d", "::": "", "::1": "",
		"fe80::1%eth0": "",
	} {
		if got := topology.Place("east", netip.MustParseAddr(client)).zone; got != zone {
			t.Errorf("%s: got zone %q, want %q", client, got, zone)
		}
	}
	for client, tiers := range map[string]string{
		"10.0.0.1": "0 1 1 1 1 0 2 3 3 3", // a, in the region of b
		"10.0.1.1": "1 0 1 1 1 2 0 3 3 3",
		"10.0.1.9": "1 0 1 1 1 2 0 3 3 3",
		"10.0.2.1": "0 1 1 1 1 0 2 3 3 3",
		// d is in no region.
		"255.255.255.1": "1 1 1 0 1 3 3 3 0 3",
		"172.16.0.1":    "0 0 0 0 0 1 1 1 1 1",
	} {
		place := topology.Place("east", netip.MustParseAddr(client))
		var got []string
		for _, cluster := range []string{"east", "west"} {
			for _, zone := range []string{"a", "b", "c", "d", ""} {
				got = append(got, fmt.Sprint(place.Tier(PreferZone, cluster, zone)))
				want := map[string]uint16{"east": 0, "west": 1}[cluster]
				if tier := place.Tier(PreferCluster, cluster, zone); tier != want {
					t.Errorf("%s prefers its cluster: %s is in tier %d", client, cluster, tier)
				}
			}
		}
		if text := strings.Join(got, " "); text != tiers {
			t.Errorf("%s: got %s, want %s", client, text, tiers)
		}
	}
	if tier := NewTopology(nil).Place("", netip.Addr{}).Tier(PreferZone, "", ""); tier != 1 {
		t.Errorf("endpoints that tell no cluster are in tier %d of a cluster that has no id", tier)
	}
}

// TestPlaces compares places with a look at each prefix.
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
				node.Prefixes = append(node.Prefixes, netip.PrefixFrom(addr, r.IntN(addr.BitLen()+1)))
			}
			nodes = append(nodes, node)
		}
		topology := NewTopology(nodes)
		again := slices.Clone(nodes)
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		if !maps.Equal(topology.zones, NewTopology(again).zones) {
			t.Fatalf("seed %d: the order of nodes matters", seed)
		}
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
			if got := topology.Place("east", client).zone; got != want {
				t.Fatalf("seed %d, client %s: got %q, want %q; nodes %v", seed, client, got, want, nodes)
			}
		}
	}
}
