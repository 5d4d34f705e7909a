// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

// askAs looks a name up for a client.
func askAs(snapshot *record.Index, qname string, qtype uint16, limit int, client record.Client) record.Answer {
	return recordtest.Ask(snapshot, record.Question{Name: qname, Type: qtype, Max: limit, Client: client})
}

func TestTheAnswerFillsTheMessageAndTheServerCutsNothing(t *testing.T) {
	for _, count := range []int{1, 10, 40, 430, 2000} {
		snapshot := snapshotOf(build(sql, recordtest.Many(count, count == 40)...))
		for _, q := range []struct {
			qname string
			qtype uint16
			extra int // octets of the greatest record
		}{
			{"db.demo.svc." + zone, dns.TypeA, 16},
			{"DB.demo.svc." + zone, dns.TypeA, 16},
			{"db.demo.svc." + zone, dns.TypeAAAA, 28},
			{"db.demo.svc." + zone, dns.TypeSRV, 80},
			{"_sql._tcp.db.demo.svc." + zone, dns.TypeSRV, 80},
		} {
			for _, size := range []int{512, 1232, 4096, 65535} {
				t.Run(fmt.Sprintf("%d %s %s %d", count, q.qname, dns.TypeToString[q.qtype], size), func(t *testing.T) {
					const opt = 11
					reply := askAs(snapshot, q.qname, q.qtype, 0, record.Client{Size: size - opt, Point: 12345})
					if reply.Result == record.Empty {
						return
					}
					all := len(ask(snapshot, q.qname, q.qtype).Answer)
					if reply.Truncated != (len(reply.Answer) < all) {
						t.Errorf("%d of %d records, truncated %v", len(reply.Answer), all, reply.Truncated)
					}
					if cap(reply.Answer) > len(reply.Answer) || cap(reply.Extra) > len(reply.Extra) {
						t.Error("a plugin that appends to the reply writes into what others have")
					}
					m := new(dns.Msg).SetQuestion(q.qname, q.qtype)
					m.Response, m.Truncated, m.Answer, m.Extra = true, reply.Truncated, reply.Answer, reply.Extra
					m.SetEdns0(1232, false)
					extra := len(m.Extra)
					m.Truncate(size)
					if len(m.Answer) != len(reply.Answer) || len(m.Extra) != extra {
						t.Errorf("of %d answers and %d additional records the server left %d and %d",
							len(reply.Answer), extra, len(m.Answer), len(m.Extra))
					}
					m.Compress = true
					if length := m.Len(); reply.Truncated && length+q.extra <= size {
						t.Errorf("the message has %d octets, and there is room in %d for one more record", length, size)
					}
				})
			}
		}
	}
}

// TestManyIPs: imports of other implementations may have more IPs than fit into a message, or take thousands of
// addresses from their endpoints. All are in equally many answers. Addresses that do not fit cost the answer no memory.
func TestManyIPs(t *testing.T) {
	imported := &record.Import{Key: "db.demo", Ports: []record.Port{{Label: "_sql._tcp", Number: 5432}}}
	for i := range 10000 {
		imported.Addrs = append(imported.Addrs, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	snapshot := snapshotOf(record.Build(config, imported, nil))
	few, taken := *imported, map[string]int{}
	few.Addrs = imported.Addrs[:40]
	some := snapshotOf(record.Build(config, &few, nil))
	for size, want := range map[int]int{512: 29, 1232: 40} {
		reply := askAs(some, "db.demo.svc."+zone, dns.TypeA, 0, record.Client{Size: size})
		if len(reply.Answer) != want || reply.Truncated != (want < 40) {
			t.Errorf("%d octets have %d IPs, truncated %t", size, len(reply.Answer), reply.Truncated)
		}
	}
	for point := range uint64(400) {
		for _, rr := range askAs(some, "db.demo.svc."+zone, dns.TypeA, 0, record.Client{Size: 512, Point: point}).Answer {
			taken[dataOf(rr)]++
		}
	}
	fair(t, taken, 40, 400*29)
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if reply := askAs(snapshot, "db.demo.svc."+zone, dns.TypeSRV, 0, record.Client{Size: 1232}); len(reply.Extra) != 71 {
			t.Fatalf("got %d additional records", len(reply.Extra))
		}
	}
	runtime.ReadMemStats(&after)
	if octets := (after.TotalAlloc - before.TotalAlloc) / times; octets > 64<<10 {
		t.Errorf("an answer takes %d octets", octets)
	}
}

// TestWithMaxAnswersThereIsAFairSubset: all endpoints are in equally many answers, and A and AAAA return the same
// endpoints.
func TestWithMaxAnswersThereIsAFairSubset(t *testing.T) {
	const limit, clients = 7, 1000
	for _, test := range []struct {
		clusters, each int // endpoints per cluster; every second and third cluster has one or two more
	}{{2, 50}, {40, 1}, {2, 2}} {
		var all []*discoveryv1.EndpointSlice
		count := 0
		for c := range test.clusters {
			v4 := fmt.Sprintf("c%d[sql=%d]:", c, 1+c%5)
			v6 := v4
			for i := range test.each + c%3 {
				v4 += fmt.Sprintf(" 10.%d.0.%d/h%d", c+1, i+1, i)
				v6 += fmt.Sprintf(" fd00:%d::%d/h%d", c+1, i+1, i)
				count++
			}
			all = append(all, recordtest.Slice(v4), recordtest.Slice(v6))
		}
		snapshot, want := snapshotOf(build(sql, all...)), min(limit, count)
		take := func(point uint64, qtype uint16) (endpoints []string) {
			reply := askAs(snapshot, "db.demo.svc."+zone, qtype, limit, record.Client{Size: 65535, Point: point})
			if len(reply.Answer) != want || reply.Truncated {
				t.Fatalf("%+v: %d records, truncated %v", test, len(reply.Answer), reply.Truncated)
			}
			for _, rr := range reply.Answer {
				endpoint := strings.TrimPrefix(strings.TrimPrefix(dataOf(rr), "10."), "fd00:")
				endpoints = append(endpoints, strings.ReplaceAll(strings.Replace(endpoint, ".0.", ".", 1), "::", "."))
			}
			slices.Sort(endpoints)
			return endpoints
		}
		taken, srvTaken := map[string]int{}, map[string]int{}
		for point := range uint64(clients) {
			a, aaaa := take(point, dns.TypeA), take(point, dns.TypeAAAA)
			if !slices.Equal(a, aaaa) {
				t.Fatalf("%+v: AAAA is of %v, A of %v", test, aaaa, a)
			}
			for _, endpoint := range a {
				taken[endpoint]++
			}
			for _, target := range take(point, dns.TypeSRV) {
				srvTaken[target]++
			}
		}
		fair(t, taken, count, clients*want)
		fair(t, srvTaken, count, clients*want)
	}
}

// fair expects that count different records were returned, each about equally often.
func fair(t *testing.T, taken map[string]int, count, records int) {
	t.Helper()
	if len(taken) != count {
		t.Errorf("%d were taken, want %d", len(taken), count)
	}
	for which, n := range taken {
		if mean := records / count; n < mean*9/10 || n > mean*11/10 {
			t.Errorf("%v was taken %d times, want about %d", which, n, mean)
		}
	}
}

func dataOf(rr dns.RR) string { return strings.TrimPrefix(rr.String(), rr.Header().String()) }
