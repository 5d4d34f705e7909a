// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// many is a headless service with so many endpoints in each of two clusters, of both families where dual is set. Those
// of east, and all if dual, have hostnames.
func many(t *testing.T, count int, dual bool) *record.Index {
	t.Helper()
	var all []string
	for c, cluster := range []string{"east", "west"} {
		var v4, v6 []string
		for i := range count {
			host := ""
			if cluster == "east" || dual {
				host = fmt.Sprintf("/db-%d", i)
			}
			v4 = append(v4, fmt.Sprintf("10.%d.%d.%d%s", c+1, i/250, 1+i%250, host))
			v6 = append(v6, fmt.Sprintf("fd00:%d::%x%s", c+1, i+1, host))
		}
		all = append(all, from(cluster, "IPv4", sqlPorts, v4...))
		if dual {
			all = append(all, from(cluster, "IPv6", sqlPorts, v6...))
		}
	}
	return snapshotOf(build(t, sql, all...))
}

// askAs looks a name up for a client.
func askAs(snapshot *record.Index, qname string, qtype uint16, limit int, client record.Client) record.Answer {
	below := below(qname)
	return lookup(snapshot, record.Question{Name: qname, Request: record.Parse(below), Type: qtype, Max: limit}, client)
}

func TestTheAnswerFillsTheMessageAndTheServerCutsNothing(t *testing.T) {
	for _, count := range []int{1, 10, 40, 500, 2000} {
		snapshot := many(t, count, count == 40)
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
					reply := askAs(snapshot, q.qname, q.qtype, 0,
						record.Client{Size: size - opt, Point: 12345})
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
					m.Response, m.Truncated = true, reply.Truncated
					m.Answer, m.Extra = reply.Answer, reply.Extra
					m.SetEdns0(1232, false)
					before, extra := len(m.Answer), len(m.Extra)
					m.Truncate(size)
					if len(m.Answer) != before || len(m.Extra) != extra {
						t.Errorf("the server cut %d of %d answers, %d of %d additional", before-len(m.Answer), before,
							extra-len(m.Extra), extra)
					}
					packed, err := m.Pack()
					if err != nil {
						t.Fatal(err)
					}
					if len(packed) > size {
						t.Errorf("the message has %d octets, and the client takes %d", len(packed), size)
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

// TestWithMaxAnswersThereIsAFairSubset: each endpoint is in as many answers as any other, and those of both families are of
// the same endpoints.
func TestWithMaxAnswersThereIsAFairSubset(t *testing.T) {
	const limit, clients = 7, 5000
	for name, test := range map[string]struct {
		clusters, each int  // endpoints of each cluster, one more in every second and third
		named          bool // have hostnames
	}{
		"two large clusters":    {2, 50, true},
		"without hostnames":     {1, 100, false},
		"many of a few":         {40, 1, true},
		"fewer than are wanted": {2, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			endpoints := map[string]int{} // by address
			for c := range test.clusters {
				var v4, v6 []string
				for i := range test.each + c%3 {
					host := ""
					if test.named {
						host = fmt.Sprintf("/h%d", i)
					}
					a, aaaa := fmt.Sprintf("10.%d.0.%d", c, i+1), fmt.Sprintf("fd00:%x::%x", c+1, i+1)
					endpoints[a], endpoints[aaaa] = 1000*c+i, 1000*c+i
					v4, v6 = append(v4, a+host), append(v6, aaaa+host)
				}
				ports := portsOf(fmt.Sprintf("sql=%d", 1+c%5))
				all = append(all, from(fmt.Sprintf("c%d", c), "IPv4", ports, v4...), from(fmt.Sprintf("c%d", c), "IPv6", ports, v6...))
			}
			snapshot, count := snapshotOf(build(t, sql, all...)), len(endpoints)/2
			want, targets := min(limit, count), count // of an SRV answer
			if !test.named {
				targets *= 2
			}
			taken, srvTaken := map[int]int{}, map[string]int{}
			for point := range uint64(clients) {
				client := record.Client{Size: 65535, Point: point}
				ask := func(qtype uint16) record.Answer {
					return askAs(snapshot, "db.demo.svc."+zone, qtype, limit, client)
				}
				of := func(reply record.Answer) (taken []int) {
					if len(reply.Answer) != want || reply.Truncated {
						t.Fatalf("%d records, truncated %v", len(reply.Answer), reply.Truncated)
					}
					for _, rr := range reply.Answer {
						taken = append(taken, endpoints[dataOf(rr)])
					}
					slices.Sort(taken)
					return taken
				}
				a, aaaa := of(ask(dns.TypeA)), of(ask(dns.TypeAAAA))
				if !slices.Equal(a, aaaa) {
					t.Fatalf("AAAA is of %v, A of %v", aaaa, a)
				}
				for _, endpoint := range a {
					taken[endpoint]++
				}
				srv := ask(dns.TypeSRV)
				if n := len(srv.Answer); n != min(limit, targets) || len(srv.Extra) != n*2*count/targets || srv.Truncated {
					t.Fatalf("%d SRV records, %d additional, truncated %v", n, len(srv.Extra), srv.Truncated)
				}
				for _, rr := range srv.Answer {
					srvTaken[rr.(*dns.SRV).Target]++
				}
			}
			fair(t, taken, count, clients*want)
			fair(t, srvTaken, targets, clients*min(limit, targets))
		})
	}
}

// fair expects that so many were taken, each about as often as any other.
func fair[T comparable](t *testing.T, taken map[T]int, count, records int) {
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
