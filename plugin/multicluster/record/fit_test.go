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
// of east have hostnames.
func many(t *testing.T, count int, dual bool) *record.Index {
	t.Helper()
	var all []string
	for c, cluster := range []string{"east", "west"} {
		var v4, v6 []string
		for i := range count {
			host := ""
			if cluster == "east" || dual {
				host = fmt.Sprintf(", hostname: db-%d", i)
			}
			v4 = append(v4, fmt.Sprintf("{addresses: [10.%d.%d.%d]%s}", c+1, i/250, 1+i%250, host))
			v6 = append(v6, fmt.Sprintf("{addresses: ['fd00:%d::%x']%s}", c+1, i+1, host))
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
					if reply.Truncated && len(reply.Extra) > 0 && len(reply.Answer) == 0 {
						t.Error("additional records, and no answer")
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

func TestWithMaxAnswersThereIsAFairSubset(t *testing.T) {
	const count, limit = 50, 7
	snapshot := many(t, count, true)
	hosts := map[string]string{} // by address
	for _, rr := range walk(snapshot) {
		if host, found := strings.CutSuffix(rr.Header().Name, ".db.demo.svc."+zone); found &&
			rr.Header().Rrtype != dns.TypeSRV {
			hosts[dataOf(rr)] = host
		}
	}
	taken := map[string]int{}
	const clients = 5000
	for point := range uint64(clients) {
		client := record.Client{Size: 65535, Point: point}
		a := askAs(snapshot, "db.demo.svc."+zone, dns.TypeA, limit, client)
		aaaa := askAs(snapshot, "db.demo.svc."+zone, dns.TypeAAAA, limit, client)
		if len(a.Answer) != limit || a.Truncated {
			t.Fatalf("%d records, truncated %v", len(a.Answer), a.Truncated)
		}
		got, want := hostsOf(hosts, aaaa.Answer), hostsOf(hosts, a.Answer)
		if !slices.Equal(got, want) {
			t.Fatalf("AAAA is of %v, A of %v", got, want)
		}
		for _, host := range want {
			taken[host]++
		}
		srv := askAs(snapshot, "_sql._tcp.db.demo.svc."+zone, dns.TypeSRV, limit, client)
		if len(srv.Answer) != limit || len(srv.Extra) != 2*limit || srv.Truncated {
			t.Fatalf("%d SRV records, %d additional, truncated %v", len(srv.Answer), len(srv.Extra), srv.Truncated)
		}
	}
	if len(taken) != 2*count {
		t.Errorf("%d endpoints were taken, want %d", len(taken), 2*count)
	}
	for host, n := range taken {
		if mean := clients * limit / (2 * count); n < mean*9/10 || n > mean*11/10 {
			t.Errorf("%s was taken %d times, want about %d", host, n, mean)
		}
	}
}

func TestWithoutHostnamesBothFamiliesTakeTheSamePlaces(t *testing.T) {
	const count, limit = 100, 7
	place := map[string]int{} // by address
	var v4, v6 []string
	for i := range count {
		a, aaaa := fmt.Sprintf("10.1.0.%d", i+1), fmt.Sprintf("fd00::%x", i+1)
		place[a], place[aaaa] = i, i
		v4, v6 = append(v4, "{addresses: ["+a+"]}"), append(v6, "{addresses: ['"+aaaa+"']}")
	}
	snapshot := snapshotOf(build(t, sql, from("east", "IPv4", sqlPorts, v4...), from("east", "IPv6", sqlPorts, v6...)))
	places := func(qtype uint16, point uint64) (taken []int) {
		client := record.Client{Size: 65535, Point: point}
		for _, rr := range askAs(snapshot, "db.demo.svc."+zone, qtype, limit, client).Answer {
			taken = append(taken, place[dataOf(rr)])
		}
		return taken
	}
	for point := range uint64(count) {
		a, aaaa := places(dns.TypeA, point), places(dns.TypeAAAA, point)
		if len(a) != limit || !slices.Equal(a, aaaa) {
			t.Fatalf("A is of the places %v, AAAA of %v", a, aaaa)
		}
	}
}

func dataOf(rr dns.RR) string { return strings.TrimPrefix(rr.String(), rr.Header().String()) }

// hostsOf are the host names whose addresses these are, sorted.
func hostsOf(hosts map[string]string, records []dns.RR) []string {
	names := make([]string, len(records))
	for i, rr := range records {
		names[i] = hosts[dataOf(rr)]
	}
	slices.Sort(names)
	return names
}

func TestTheClientMattersOnlyToAnswersThatMayNotFit(t *testing.T) {
	snapshot := many(t, 2, true)
	for qname, matters := range map[string]bool{
		"db.demo.svc.":           true,
		"_sql._tcp.db.demo.svc.": true,
		"db-0.east.db.demo.svc.": false,
		"db-9.east.db.demo.svc.": false,
		"demo.svc.":              false,
	} {
		qtype := dns.TypeA
		if strings.HasPrefix(qname, "_") {
			qtype = dns.TypeSRV
		}
		q, asked := question(qname+zone, qtype), false
		snapshot.Lookup(&q, func() record.Client {
			asked = true
			return large
		})
		if asked != matters {
			t.Errorf("%s: the client was asked for: %t", qname, asked)
		}
	}
}
