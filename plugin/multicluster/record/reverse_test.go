// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

var reverseConfig = &record.Config{
	Zones: []string{zone, "10.in-addr.arpa.", "ip6.arpa."}, Reverse: 2, Cluster: "east", TTL: 5,
}

// pointers returns all PTR records, each of which must be in its zone.
func pointers(t *testing.T, snapshot *record.Index) (records []dns.RR) {
	t.Helper()
	for number, zone := range reverseConfig.Zones[1:] {
		_, all := snapshot.Snapshot(1 + number)
		for some := range all {
			records = append(records, some...)
			if !dns.IsSubDomain(zone, some[0].Header().Name) {
				t.Errorf("%s is in %s", some[0], zone)
			}
		}
	}
	return records
}

// TestPointersDependOnWhatThereIsAlone changes services that share addresses at random, and compares the PTR records
// with an index that gets only the final states, in another order.
func TestPointersDependOnWhatThereIsAlone(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	x := record.NewIndex(reverseConfig)
	last := services{}
	found := 0
	for step := range 1000 {
		s := &source{randomOctets(random, random.IntN(300))}
		raw := s.serviceImport()
		raw.Name, raw.Namespace = fmt.Sprintf("db-%d", random.IntN(4)), "demo"
		if random.IntN(4) > 0 {
			raw.Spec.Type = mcsv1beta1.Headless
		}
		imported := record.FromServiceImport(raw)
		var all []*record.Endpoints
		for range s.n(4) {
			all = append(all, record.FromEndpointSlice(s.slice(), false))
		}
		last[imported.Key] = record.Build(reverseConfig, imported, all)
		if random.IntN(5) == 0 {
			delete(last, imported.Key)
		}
		x.Update(uint32(step), services{imported.Key: last[imported.Key]})
		fresh := record.NewIndex(reverseConfig)
		fresh.Update(1, last)
		got := pointers(t, x)
		if want := pointers(t, fresh); !slices.Equal(text(got), text(want)) {
			t.Fatalf("step %d: the records are\n%q\nwant\n%q", step, text(got), text(want))
		}
		for _, rr := range got {
			found++
			checkPointer(t, x, rr)
		}
	}
	if found < 200 {
		t.Errorf("%d records were seen, too few to prove anything", found)
	}
}

// askReverse asks for the PTR record of a name.
func askReverse(x *record.Index, qname string) record.Answer {
	q := record.Question{Name: qname, Type: dns.TypePTR}
	q.Answer.Result = x.LookupReverse(&q)
	return q.Answer
}

// checkPointer queries the PTR record, and then the address of its target.
func checkPointer(t *testing.T, snapshot *record.Index, rr dns.RR) {
	t.Helper()
	owner, target := rr.Header().Name, rr.(*dns.PTR).Ptr
	if reply := askReverse(snapshot, owner); !slices.Equal(text(reply.Answer), text([]dns.RR{rr})) {
		t.Errorf("%s is answered with %v, and transferred with %v", owner, reply.Answer, rr)
	}
	for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		for _, address := range ask(snapshot, target, qtype).Answer {
			if reverse, err := dns.ReverseAddr(dataOf(address)); err == nil && reverse == owner {
				return
			}
		}
	}
	t.Errorf("%s has the name %s, which does not resolve to it", owner, target)
}

// TestReverseNames: an address has one name, a name of a part of an address exists, and other names do not.
func TestReverseNames(t *testing.T) {
	const ips = "10.1.0.255 10.97.98.99 fd00:1::a 2001:db8:ffff:1:2:3:4:5"
	service := build(recordtest.ClusterSetIP(ips, ""))
	x := record.NewIndex(reverseConfig)
	x.Update(1, services{service.Import.Key: build(recordtest.ClusterSetIP("10.1.0.255", ""))})
	x.Update(2, services{service.Import.Key: service})
	want := func(qname string, want record.Result) {
		t.Helper()
		if got := askReverse(x, qname).Result; got != want {
			t.Errorf("%s is %v, want %v", qname, got, want)
		}
	}
	for ip := range strings.FieldsSeq(ips) {
		reverse, err := dns.ReverseAddr(ip)
		if err != nil {
			t.Fatal(err)
		}
		want(reverse, record.Found)
		want(strings.ToUpper(reverse), record.Found)
		want("1."+reverse, record.NotExist)
		for _, above, _ := strings.Cut(reverse, "."); strings.Count(above, ".") > 2; _, above, _ = strings.Cut(above, ".") {
			want(above, record.Empty)
		}
	}
	for _, other := range []string{
		"1.0.0.010.in-addr.arpa.", "256.0.0.10.in-addr.arpa.", "a.0.0.10.in-addr.arpa.", "..in-addr.arpa.", "0/25.0.0.10.in-addr.arpa.",
		"+1.0.0.10.in-addr.arpa.", "-1.10.in-addr.arpa.", "_sql._tcp.10.in-addr.arpa.", "g.ip6.arpa.", "10.ip6.arpa.",
		"1.2.3.4.clusterset.local.", "1.0.1.10.in-addr.arpa.", "67.66.65.10.in-addr.arpa.", // 65 is not a letter
		"f.f.0.0.1.0.a.0.f.f.f.f." + strings.Repeat("0.", 20) + "ip6.arpa.", // ::ffff:10.1.0.255
	} {
		want(other, record.NotExist)
	}
}
