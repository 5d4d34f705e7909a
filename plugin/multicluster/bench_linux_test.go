// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// BenchmarkServices asks for names at random among those of many services, in turns with a floor that has the
// records of each name at hand and looks up nothing. The records are anywhere in memory, and the same for both. It
// reports the processor time of a reply of each, and the ratio of the two.
func BenchmarkServices(b *testing.B) {
	for _, count := range []int{1, 1000, 11000, 100000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			m := newBenchPlugin(b, manyImports(count))
			r := benchQuery("", dns.TypeA, 1232)
			names, floors := make([]string, count), make([]floor, count)
			for i := range floors {
				names[i] = fmt.Sprintf("web-%d.demo.svc.clusterset.local.", i)
				r.Question[0].Name = names[i]
				floors[i].answer = capture(b, m, r, udpClient).answer
			}
			random := rand.New(rand.NewPCG(1, 2))
			random.Shuffle(count, func(i, j int) {
				names[i], names[j] = names[j], names[i]
				floors[i], floors[j] = floors[j], floors[i]
			})
			for i, name := range names {
				names[i] = strings.Clone(name) // a query comes from the network: its name is not spread over memory
			}
			inTurns(b, func(i int) error {
				r.Question[0].Name = names[i%count]
				_, err := m.ServeDNS(b.Context(), udpClient, r)
				return err
			}, func(i int) error {
				i += count / 2 // other records than those that were just in use
				r.Question[0].Name = names[i%count]
				return floors[i%count].serve(udpClient, r)
			})
		})
	}
}

// BenchmarkReply compares replies of the plugin with the floor, through what the server does with them.
func BenchmarkReply(b *testing.B) {
	all := manyImports(1000)
	for _, count := range []int{10, 100, 1000, 10000} {
		all.headless(fmt.Sprintf("db-%d", count), count)
	}
	m := newBenchPlugin(b, all)
	for _, bc := range []struct {
		qname  string
		qtype  uint16
		client *packer
	}{
		{"web-7", dns.TypeA, udpClient},
		{"_http._tcp.web-7", dns.TypeSRV, udpClient},
		{"web-7", dns.TypeAAAA, udpClient}, // NODATA
		{"none", dns.TypeA, udpClient},
		{"db-3.east.db-1000", dns.TypeA, udpClient},
		{"10-2-0-3.west.db-10000", dns.TypeA, udpClient},
		{"db-10", dns.TypeA, tcpClient},
		{"db-1000", dns.TypeA, tcpClient},
		{"_sql._tcp.db-100", dns.TypeSRV, tcpClient},
		{"_sql._tcp.db-1000", dns.TypeSRV, tcpClient},
		{"db-1000", dns.TypeA, udpClient}, // as much as fits
		{"_sql._tcp.db-1000", dns.TypeSRV, udpClient},
	} {
		r := benchQuery(bc.qname+".demo.svc."+testZone, bc.qtype, 1232)
		f := capture(b, m, r, bc.client)
		f.extra = slices.DeleteFunc(f.extra, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeOPT })
		b.Run(fmt.Sprint(bc.qname, " ", dns.TypeToString[bc.qtype], " ", bc.client.remote.Network()), func(b *testing.B) {
			inTurns(b, func(int) error {
				_, err := m.ServeDNS(b.Context(), request.NewScrubWriter(r, bc.client), r)
				return err
			}, func(int) error { return f.serve(request.NewScrubWriter(r, bc.client), r) })
		})
	}
}

// inTurns measures batches of two functions in turns, by the processor time of the thread: what else the machine does
// counts little. Garbage is collected between batches.
func inTurns(b *testing.B, ours, floor func(i int) error) {
	b.Helper()
	const batch = 1000
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var times [2][]float64
	for turn := 0; b.Loop(); turn++ {
		for k, serve := range []func(int) error{ours, floor} {
			began := threadTime(b)
			for i := range batch {
				if err := serve(turn*batch + i); err != nil {
					b.Fatal(err)
				}
			}
			times[k] = append(times[k], float64(threadTime(b)-began)/batch)
		}
		if turn%20 == 19 {
			runtime.GC()
		}
	}
	var median [2]float64
	for k := range times {
		slices.Sort(times[k])
		median[k] = times[k][len(times[k])/2]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median[0], "ours-ns")
	b.ReportMetric(median[1], "floor-ns")
	b.ReportMetric(median[0]/median[1], "ours/floor")
}

// threadTime is the processor time that this thread has used, in nanoseconds.
func threadTime(b *testing.B) int64 {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		b.Fatal(err)
	}
	return used.Nano()
}
