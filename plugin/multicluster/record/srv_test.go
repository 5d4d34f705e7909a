// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// srv is the YAML of a slice with the annotation of SRV answers. Endpoints are as for from.
func srv(cluster, annotation string, endpoints ...string) string {
	text := in("", strings.Join(endpoints, " "))
	return text + fmt.Sprintf("metadata: {labels: {multicluster.kubernetes.io/source-cluster: %s}, annotations: "+
		"{clusterset-dns.github.io/srv: '%s'}}\n", cluster, annotation)
}

// srvSlices are slices with ";" between them: of each the cluster and the annotation, and after ": " endpoints.
func srvSlices(text string) (all []string) {
	for each := range strings.SplitSeq(text, "; ") {
		head, endpoints, _ := strings.Cut(each, ": ")
		cluster, annotation, _ := strings.Cut(head, " ")
		all = append(all, srv(cluster, annotation, endpoints))
	}
	return all
}

// srvOf is the SRV records of an answer, in its order of priorities: each priority, weight, and target.
func srvOf(records []dns.RR) string {
	var texts []string
	for _, rr := range records {
		srv := rr.(*dns.SRV)
		target, _, _ := strings.Cut(srv.Target, ".db.demo.")
		texts = append(texts, fmt.Sprintf("%03d %d %s", srv.Priority, srv.Weight, target))
	}
	slices.Sort(texts)
	for i := range texts {
		texts[i] = strings.TrimPrefix(strings.TrimPrefix(texts[i], "0"), "0")
	}
	return strings.Join(texts, ", ")
}

// TestSRV: A has the ready endpoints, and SRV those that wait, too, in their order.
func TestSRV(t *testing.T) {
	for name, test := range map[string]struct{ slices, a, srv string }{ // slices as in srvSlices
		"tiers": {
			"east: 10.1.0.1; west priority=2: ~10.2.0.1; north priority=4: ~10.3.0.1",
			"10.1.0.1", "0 100 10-1-0-1.east, 2 100 10-2-0-1.west, 4 100 10-3-0-1.north",
		},
		"the best tier has nothing": {
			"west priority=2: 10.2.0.1; north priority=4: ~10.3.0.1", "10.2.0.1", "2 100 10-2-0-1.west, 4 100 10-3-0-1.north",
		},
		"shares": {
			"east weight=80: 10.1.0.1 10.1.0.2; west weight=27: 10.2.0.1 ~10.2.0.2",
			"10.1.0.1 10.1.0.2 10.2.0.1", "0 27 10-2-0-1.west, 0 27 10-2-0-2.west, 0 80 10-1-0-1.east, 0 80 10-1-0-2.east",
		},
		"what terminates is not listed": {
			"east: 10.1.0.1 ~10.1.0.2; west priority=2 terminating=1: ~10.2.0.1 ~10.2.0.2",
			"10.1.0.1", "0 100 10-1-0-1.east, 2 100 10-2-0-1.west",
		},
		"what is silent is not listed": {"east priority=2: 10.1.0.1; west: ~10.2.0.1", "10.1.0.1", "2 100 10-1-0-1.east"},
		"none is ready": {
			"east: ~10.1.0.1; west priority=2 terminating=1: ~10.2.0.1 ~10.2.0.2",
			"10.1.0.1 10.2.0.1 10.2.0.2", "0 100 10-1-0-1.east, 2 100 10-2-0-1.west, 2 100 10-2-0-2.west",
		},
		"an annotation that is not valid": {"east: 10.1.0.1; west priority=high: ~10.2.0.1", "10.1.0.1", "0 100 10-1-0-1.east"},
		"near first, within each priority": {
			"west: 10.2.0.1; east weight=50: 10.1.0.1; west priority=2: ~10.2.0.3; east priority=2: ~10.1.0.3",
			"10.1.0.1", "0 50 10-1-0-1.east, 1 100 10-2-0-1.west, 8 100 10-1-0-3.east, 9 100 10-2-0-3.west",
		},
		"both families of a host that waits": {
			"east: 10.1.0.1/a; west priority=2: ~10.2.0.1/b; west priority=2 weight=7: ~fd00::2/b", "10.1.0.1", "0 100 a.east, 2 100 b.west",
		},
		"one family of a host waits": {
			"east: 10.1.0.1/a; west priority=2: ~10.2.0.1/b; west priority=4: fd00::2/b", "10.1.0.1", "0 100 a.east, 4 100 b.west",
		},
		"an address in two slices": {
			"east: 10.1.0.1; west priority=4 weight=3: ~10.2.0.1; west priority=2 weight=5: ~10.2.0.1; west: ~10.2.0.1",
			"10.1.0.1", "0 100 10-1-0-1.east, 2 5 10-2-0-1.west",
		},
		"an address in two slices, of the usual weight in one": {
			"west weight=27: 10.2.0.1; west: 10.2.0.1", "10.2.0.1", "0 100 10-2-0-1.west",
		},
		"an address in two slices, ready in one": {
			"west priority=2 weight=3: ~10.2.0.1; west priority=4 weight=5: 10.2.0.1", "10.2.0.1", "4 5 10-2-0-1.west",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, prefer := srvSlices(test.slices), object.PreferDefault
			if strings.HasPrefix(name, "near first") {
				prefer = object.PreferCluster
			}
			for range 2 {
				snapshot := snapshotOf(zoned(t, "spec: "+sql, all...))
				if prefer == object.PreferDefault {
					checkZone(t, snapshot)
				}
				look := func(qname string, qtype uint16) record.Answer {
					q := question(qname, qtype)
					q.Prefer = prefer
					return lookup(snapshot, q, record.Client{Size: 65535, Place: east.Place("east", netip.Addr{})})
				}
				var a []string
				for _, rr := range look("db.demo.svc."+zone, dns.TypeA).Answer {
					a = append(a, dataOf(rr))
				}
				slices.Sort(a)
				if got := strings.Join(a, " "); got != test.a {
					t.Errorf("A: got %s, want %s", got, test.a)
				}
				for _, qname := range []string{"db.demo.svc." + zone, "_sql._TCP.db.demo.svc." + zone} {
					if got := srvOf(look(qname, dns.TypeSRV).Answer); got != test.srv {
						t.Errorf("SRV of %s:\ngot  %s\nwant %s", qname, got, test.srv)
					}
				}
				slices.Reverse(all) // the order does not matter
			}
		})
	}
}

// TestAFewOfAPriority: an answer that cannot have all records has those of the best priorities, for every client.
func TestAFewOfAPriority(t *testing.T) {
	var first, second, third []string
	for i := range 30 {
		first = append(first, fmt.Sprintf("10.1.0.%d", i+1))
		second = append(second, fmt.Sprintf("~10.2.0.%d", i+1))
		third = append(third, fmt.Sprintf("~10.3.0.%d", i+1))
	}
	snapshot := snapshotOf(zoned(t, "spec: "+sql, srv("west", "priority=2 weight=9", second...),
		srv("north", "priority=4", third...), srv("south", "priority=2", "~10.4.0.1", "~10.4.0.2"),
		srv("east", "", first...)))
	counts := func(reply record.Answer) (of [5]int) {
		last := uint16(0)
		for _, rr := range reply.Answer {
			srv := rr.(*dns.SRV)
			if srv.Priority < last {
				t.Fatalf("priority %d comes after %d", srv.Priority, last)
			}
			last = srv.Priority
			of[srv.Priority]++
		}
		return of
	}
	seen := map[string]int{}
	for point := range uint64(50) {
		reply := askAs(snapshot, "db.demo.svc."+zone, dns.TypeSRV, 40, record.Client{Size: 65535, Point: point})
		if got := counts(reply); got != [5]int{30, 0, 10, 0, 0} {
			t.Fatalf("client %d: %v", point, got)
		}
		for _, rr := range reply.Answer {
			seen[rr.(*dns.SRV).Target]++
		}
		reply = askAs(snapshot, "db.demo.svc."+zone, dns.TypeSRV, 0, record.Client{Size: 1232, Point: point})
		if got := counts(reply); !reply.Truncated || got[0] == 0 || got[2]+got[4] != 0 {
			t.Fatalf("client %d over UDP: %v", point, got)
		}
	}
	if len(seen) < 60 {
		t.Errorf("%d targets were ever answered", len(seen))
	}
}

// TestSizeOfBlocks: most services have one block, or a few, and no priority.
func TestSizeOfBlocks(t *testing.T) {
	if size := unsafe.Sizeof(record.Block{}); size > 88 {
		t.Errorf("a block takes %d octets and what it points to, more than 88", size)
	}
}
