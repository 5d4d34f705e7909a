// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

// east has clients in three zones.
var east = record.NewTopology([]record.Node{
	{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.64.1.0/24")}, Zone: "a"},
	{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.64.2.0/24")}, Zone: "b"},
	{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.64.3.0/24")}, Zone: "c"},
})

// TestTiers: A and AAAA return the ready endpoints of the nearest tier. SRV returns all ready and waiting endpoints, sorted
// by the priorities of the slices and then by tier. The usual endpoints are in zones a and b of east and a to c of west.
func TestTiers(t *testing.T) {
	const (
		inA, inC, nowhere = "10.64.1.7", "10.64.3.7", "192.0.2.1"
		plain             = "spec: " + sql
		cluster           = "metadata: {annotations: {clusterset-dns.github.io/prefer: cluster}}\n" + plain
		none              = "metadata: {annotations: {clusterset-dns.github.io/prefer: none}}\n" + plain
		local             = "metadata: {annotations: {clusterset-dns.github.io/prefer: local}}\n" + plain
		tiers             = "metadata: {annotations: {clusterset-dns.github.io/prefer: local > same(region)}}\n" + plain
		sameZone          = "spec: {type: Headless, trafficDistribution: PreferSameZone, ports: [{name: sql, port: 5432}]}"
		both              = "metadata: {annotations: {clusterset-dns.github.io/prefer: cluster}}\n" + sameZone
		noneButZone       = "metadata: {annotations: {clusterset-dns.github.io/prefer: none}}\n" + sameZone
		home, abroad      = "east: 10.1.0.1@a 10.1.0.2@b", "west: 10.2.0.1@a 10.2.0.2@b 10.2.0.3@c 10.2.0.4"
		usual             = home + "; " + abroad
		all               = "1.1 1.2 2.1 2.2 2.3 2.4"
		homeFirst         = "0: 1.1 1.2, 1: 2.1 2.2 2.3 2.4"
	)
	for name, test := range map[string]struct {
		raw, slices string // slices as in recordtest
		prefer      record.Preference
		client      string
		a, srv      string // as in tiersOf
	}{
		"the operator is silent":              {plain, usual, record.PreferDefault, inA, all, "0: " + all},
		"a zone abroad":                       {plain, usual, record.PreferZone, inC, "2.3", "0: 2.3, 1: 1.1 1.2, 2: 2.1 2.2 2.4"},
		"an unknown client":                   {plain, usual, record.PreferZone, nowhere, "1.1 1.2", homeFirst},
		"the import's own cluster":            {cluster, usual, record.PreferNone, inA, "1.1 1.2", homeFirst},
		"the import's own cluster, as a tier": {local, usual, record.PreferNone, inA, "1.1 1.2", homeFirst},
		"tiers are the controller's":          {tiers, usual, record.PreferDefault, inA, all, "0: " + all},
		"the import's zone":                   {sameZone, usual, record.PreferNone, inA, "1.1 2.1", "0: 1.1 2.1, 1: 1.2, 2: 2.2 2.3 2.4"},
		"the import wants nothing":            {none, usual, record.PreferZone, inA, all, "0: " + all},
		"no cluster, but the zone":            {noneButZone, usual, record.PreferCluster, inA, "1.1 2.1", "0: 1.1 2.1, 1: 1.2, 2: 2.2 2.3 2.4"},
		"nothing at home":                     {plain, abroad, record.PreferCluster, inA, "2.1 2.2 2.3 2.4", "1: 2.1 2.2 2.3 2.4"},
		"none is ready at home":               {plain, "east: ~10.1.0.1@a; west: 10.2.0.1@b", record.PreferZone, inA, "2.1", "2: 2.1"},
		// Each address family has endpoints even if those of the other family are nearer.
		"each family of another cluster": {plain, "east: 10.1.0.1@a; west: fd00::1@a", record.PreferCluster, inA, "1.1 fd00::1", "0: 1.1, 1: fd00--1"},

		"shares": {
			plain, "east weight=80: 10.1.0.1 10.1.0.2; west weight=27: 10.2.0.1 ~10.2.0.2", 0, inA, "1.1 1.2 2.1",
			"0: 1.1*80 1.2*80 2.1*27 2.2*27",
		},
		"none is ready": {
			plain, "east: ~10.1.0.1; west priority=2 terminating=1: ~10.2.0.1 ~10.2.0.2", 0, inA, "1.1 2.1 2.2", "0: 1.1, 2: 2.1 2.2",
		},
		"near first, within each priority": {
			plain, "west: 10.2.0.1; east weight=50: 10.1.0.1; west priority=2: ~10.2.0.3; east priority=2: ~10.1.0.3",
			record.PreferCluster, nowhere, "1.1", "0: 1.1*50, 1: 2.1, 6: 1.3, 7: 2.3",
		},
		"both families of a host that waits": {
			plain, "east: 10.1.0.1/a; west priority=2: ~10.2.0.1/b; west priority=2 weight=7: ~fd00::2/b", 0, inA, "1.1", "0: a, 2: b",
		},
		"one family of a host waits": {
			plain, "east: 10.1.0.1/a; west priority=2: ~10.2.0.1/b; west priority=4: fd00::2/b", 0, inA, "1.1 fd00::2", "0: a, 4: b",
		},
		"an address in two slices": {
			plain, "east: 10.1.0.1; west priority=4 weight=3: ~10.2.0.1; west priority=2 weight=5: ~10.2.0.1; west: ~10.2.0.1",
			0, inA, "1.1", "0: 1.1, 2: 2.1*5",
		},
		"an address in two slices, ready in one": {
			plain, "west priority=2 weight=3: ~10.2.0.1; west priority=4 weight=5: 10.2.0.1", 0, inA, "2.1", "4: 2.1*5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := recordtest.Slices(test.slices)
			for range 2 {
				snapshot := snapshotOf(recordtest.Build(config, "db", test.raw, all...))
				if test.raw == plain && test.prefer == record.PreferDefault {
					checkZone(t, snapshot)
				}
				look := func(qname string, qtype uint16) record.Answer {
					client := record.Client{Size: 65535, Zone: east.Zone(netip.MustParseAddr(test.client))}
					return recordtest.Ask(snapshot, record.Question{Name: qname, Type: qtype, Prefer: test.prefer, Client: client})
				}
				a, aaaa := look("db.demo.svc."+zone, dns.TypeA), look("db.demo.svc."+zone, dns.TypeAAAA)
				if got := tiersOf(slices.Concat(a.Answer, aaaa.Answer)); got != test.a {
					t.Errorf("A and AAAA: got %s, want %s", got, test.a)
				}
				for _, qname := range []string{"db.demo.svc." + zone, "_sql._TCP.db.demo.svc." + zone} {
					if got := tiersOf(look(qname, dns.TypeSRV).Answer); got != test.srv {
						t.Errorf("SRV of %s: got %s, want %s", qname, got, test.srv)
					}
				}
				slices.Reverse(all) // the order does not matter
			}
		})
	}
}

// tiersOf returns the endpoints of an answer in short form: 1.2 is 10.1.0.2 or its target. SRV targets have their
// priority, and their weight if it is not the usual one.
func tiersOf(records []dns.RR) string {
	short := func(separator, text string) string {
		if parts := strings.Split(text, separator); len(parts) == 4 {
			return parts[1] + "." + parts[3]
		}
		return text // a hostname
	}
	byPriority := map[uint16][]string{}
	var addresses []string
	for _, rr := range records {
		switch rr := rr.(type) {
		case *dns.A, *dns.AAAA:
			addresses = append(addresses, short(".", dataOf(rr)))
		case *dns.SRV:
			host, _, _ := strings.Cut(rr.Target, ".")
			target := short("-", host)
			if rr.Weight != 100 {
				target += fmt.Sprintf("*%d", rr.Weight)
			}
			byPriority[rr.Priority] = append(byPriority[rr.Priority], target)
		}
	}
	slices.Sort(addresses)
	var texts []string
	for _, priority := range slices.Sorted(maps.Keys(byPriority)) {
		slices.Sort(byPriority[priority])
		texts = append(texts, fmt.Sprintf("%d: %s", priority, strings.Join(byPriority[priority], " ")))
	}
	return strings.Join(addresses, " ") + strings.Join(texts, ", ")
}

// TestAFewOfAPriority: an answer that does not fit all records has the records with the best priorities, for every client.
func TestAFewOfAPriority(t *testing.T) {
	const all = "west priority=2: ~10.2.0.1 ~10.2.0.2; north priority=4: ~10.3.0.1; east: 10.1.0.1 10.1.0.2"
	snapshot := snapshotOf(build(sql, recordtest.Slices(all)...))
	for point := range uint64(4) {
		reply := askAs(snapshot, "db.demo.svc."+zone, dns.TypeSRV, 3, record.Client{Size: 65535, Point: point})
		if got, want := tiersOf(reply.Answer), fmt.Sprintf("0: 1.1 1.2, 2: 2.%d", 1+point%2); got != want {
			t.Errorf("client %d: got %s, want %s", point, got, want)
		}
		reply = askAs(snapshot, "db.demo.svc."+zone, dns.TypeSRV, 0, record.Client{Size: 130, Point: point})
		if got, want := tiersOf(reply.Answer), fmt.Sprintf("0: 1.%d", 1+point%2); got != want || !reply.Truncated {
			t.Errorf("client %d over UDP: got %s, want %s", point, got, want)
		}
	}
}

// TestSizes: there are many slices, so each must be small. Most services have a few blocks and no priorities.
func TestSizes(t *testing.T) {
	if slice, block := unsafe.Sizeof(record.Endpoints{}), unsafe.Sizeof(record.Block{}); slice > 144 || block > 88 {
		t.Errorf("a slice takes %d octets, more than the size class of 144, or a block %d, more than 88", slice, block)
	}
	if blocks := len(build(sql, recordtest.Many(10, false)...).Blocks); blocks != 2 {
		t.Errorf("alike endpoints of two clusters are in %d blocks", blocks)
	}
}
