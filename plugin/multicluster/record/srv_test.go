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
	for name, test := range map[string]struct {
		slices []string
		prefer object.Preference
		a, srv string
	}{
		"tiers": {
			[]string{
				srv("east", "", "10.1.0.1"), srv("west", "priority=2", "~10.2.0.1"), srv("north", "priority=4", "~10.3.0.1"),
			},
			0, "10.1.0.1", "0 100 10-1-0-1.east, 2 100 10-2-0-1.west, 4 100 10-3-0-1.north",
		},
		"the best tier has nothing": {
			[]string{srv("west", "priority=2", "10.2.0.1"), srv("north", "priority=4", "~10.3.0.1")},
			0, "10.2.0.1", "2 100 10-2-0-1.west, 4 100 10-3-0-1.north",
		},
		"shares": {
			[]string{srv("east", "weight=80", "10.1.0.1", "10.1.0.2"), srv("west", "weight=27", "10.2.0.1", "~10.2.0.2")},
			0, "10.1.0.1 10.1.0.2 10.2.0.1",
			"0 27 10-2-0-1.west, 0 27 10-2-0-2.west, 0 80 10-1-0-1.east, 0 80 10-1-0-2.east",
		},
		"what terminates is not listed": {
			[]string{srv("east", "", "10.1.0.1", "~10.1.0.2"), srv("west", "priority=2 terminating=1", "~10.2.0.1", "~10.2.0.2")},
			0, "10.1.0.1", "0 100 10-1-0-1.east, 2 100 10-2-0-1.west",
		},
		"what is silent is not listed": {
			[]string{srv("east", "priority=2", "10.1.0.1"), srv("west", "", "~10.2.0.1")},
			0, "10.1.0.1", "2 100 10-1-0-1.east",
		},
		"none is ready": {
			[]string{srv("east", "", "~10.1.0.1"), srv("west", "priority=2 terminating=1", "~10.2.0.1", "~10.2.0.2")},
			0, "10.1.0.1 10.2.0.1 10.2.0.2",
			"0 100 10-1-0-1.east, 2 100 10-2-0-1.west, 2 100 10-2-0-2.west",
		},
		"an annotation that is not valid": {
			[]string{srv("east", "", "10.1.0.1"), srv("west", "priority=high", "~10.2.0.1")},
			0, "10.1.0.1", "0 100 10-1-0-1.east",
		},
		"near first, within each priority": {
			[]string{
				srv("west", "", "10.2.0.1"), srv("east", "weight=50", "10.1.0.1"), srv("west", "priority=2", "~10.2.0.3"),
				srv("east", "priority=2", "~10.1.0.3"),
			},
			object.PreferCluster, "10.1.0.1",
			"0 50 10-1-0-1.east, 1 100 10-2-0-1.west, 8 100 10-1-0-3.east, 9 100 10-2-0-3.west",
		},
		"both families of a host that waits": {
			[]string{
				srv("east", "", "10.1.0.1/a"), srv("west", "priority=2", "~10.2.0.1/b"),
				srv("west", "priority=2 weight=7", "~fd00::2/b"),
			},
			0, "10.1.0.1", "0 100 a.east, 2 100 b.west",
		},
		"one family of a host waits": {
			[]string{
				srv("east", "", "10.1.0.1/a"), srv("west", "priority=2", "~10.2.0.1/b"), srv("west", "priority=4", "fd00::2/b"),
			},
			0, "10.1.0.1", "0 100 a.east, 4 100 b.west",
		},
		"an address in two slices": {
			[]string{
				srv("east", "", "10.1.0.1"), srv("west", "priority=4 weight=3", "~10.2.0.1"),
				srv("west", "priority=2 weight=5", "~10.2.0.1"), srv("west", "", "~10.2.0.1"),
			},
			0, "10.1.0.1", "0 100 10-1-0-1.east, 2 5 10-2-0-1.west",
		},
		"an address in two slices, of the usual weight in one": {
			[]string{srv("west", "weight=27", "10.2.0.1"), srv("west", "", "10.2.0.1")},
			0, "10.2.0.1", "0 100 10-2-0-1.west",
		},
		"an address in two slices, ready in one": {
			[]string{srv("west", "priority=2 weight=3", "~10.2.0.1"), srv("west", "priority=4 weight=5", "10.2.0.1")},
			0, "10.2.0.1", "4 5 10-2-0-1.west",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				snapshot := snapshotOf(zoned(t, "spec: "+sql, test.slices...))
				if test.prefer == object.PreferDefault {
					checkZone(t, snapshot)
				}
				look := func(qname string, qtype uint16) record.Answer {
					q := question(qname, qtype)
					q.Prefer = test.prefer
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
				slices.Reverse(test.slices) // the order does not matter
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

// TestAPriorityMovesTheSerial: it changes answers, and so does its weight.
func TestAPriorityMovesTheSerial(t *testing.T) {
	texts := []string{"", "priority=2", "priority=2 weight=7", "priority=2 weight=7 terminating=0"}
	for i, a := range texts {
		for j, b := range texts {
			x := zoned(t, "spec: "+sql, srv("east", "", "10.1.0.1"), srv("west", a, "~10.2.0.1"))
			y := zoned(t, "spec: "+sql, srv("east", "", "10.1.0.1"), srv("west", b, "~10.2.0.1"))
			same := slices.Equal(text(walk(snapshotOf(x))), text(walk(snapshotOf(y))))
			if x.AnswersAs(y) != same || same != (i == j || i+j == len(texts)-1 && i*j == 0) {
				t.Errorf("%q and %q have the same records: %t, and answer alike: %t", a, b, same, x.AnswersAs(y))
			}
		}
	}
}
