// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// zoned makes the service db like build, of a whole import, with the zones of its endpoints.
func zoned(t testing.TB, raw string, endpointSlices ...string) *record.Service {
	t.Helper()
	imported := new(mcsv1beta1.ServiceImport)
	unmarshal(t, raw, imported)
	imported.Namespace, imported.Name = "demo", "db"
	var all []*object.Endpoints
	for _, text := range endpointSlices {
		slice := new(discoveryv1.EndpointSlice)
		unmarshal(t, text, slice)
		all = append(all, object.FromEndpointSlice(slice, true))
	}
	return record.Build(config, object.FromServiceImport(imported), all)
}

// question is what a client asks.
func question(qname string, qtype uint16) record.Question {
	below := below(qname)
	return record.Question{Name: qname, Request: record.Parse(below), Type: qtype}
}

// east has clients in zones a and b, which are of one region, and c, which is not.
var east = object.NewTopology([]object.Node{
	{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.64.1.0/24")}, Zone: "a", Region: "r"},
	{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.64.2.0/24")}, Zone: "b", Region: "r"},
	{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.64.3.0/24")}, Zone: "c", Region: "s"},
})

// TestTiers: A and AAAA are of the nearest tier alone, SRV is of all, with the tiers for priorities.
func TestTiers(t *testing.T) {
	const (
		inA, inB, inC, nowhere = "10.64.1.7", "10.64.2.7", "10.64.3.7", "192.0.2.1"
		plain                  = "spec: " + sql
		cluster                = "metadata: {annotations: {clusterset-dns.github.io/prefer: cluster}}\n" + plain
		none                   = "metadata: {annotations: {clusterset-dns.github.io/prefer: none}}\n" + plain
		unknown                = "metadata: {annotations: {clusterset-dns.github.io/prefer: moon}}\n" + plain
		local                  = "metadata: {annotations: {clusterset-dns.github.io/prefer: local}}\n" + plain
		tiers                  = "metadata: {annotations: {clusterset-dns.github.io/prefer: local > same(region)}}\n" + plain
		sameZone               = "spec: {type: Headless, trafficDistribution: PreferSameZone, ports: [{name: sql, port: 5432}]}"
		both                   = "metadata: {annotations: {clusterset-dns.github.io/prefer: cluster}}\n" + sameZone
		noneButZone            = "metadata: {annotations: {clusterset-dns.github.io/prefer: none}}\n" + sameZone
	)
	e := func(endpoints ...string) string { return from("east", "IPv4", sqlPorts, endpoints...) }
	w := func(endpoints ...string) string { return from("west", "IPv4", sqlPorts, endpoints...) }
	demoted := "~10.1.0.1@a"
	usual := []string{
		e("10.1.0.1@a", "10.1.0.2@b"),
		w("10.2.0.1@a", "10.2.0.2@b", "10.2.0.3@c", "10.2.0.4"),
	}
	for name, test := range map[string]struct {
		raw    string
		slices []string
		prefer object.Preference
		client string
		a, srv string
	}{
		"nothing is preferred":                {plain, usual, object.PreferNone, inA, "1.1 1.2 2.1 2.2 2.3 2.4", "0: 1.1 1.2 2.1 2.2 2.3 2.4"},
		"the operator is silent":              {plain, usual, object.PreferDefault, inA, "1.1 1.2 2.1 2.2 2.3 2.4", "0: 1.1 1.2 2.1 2.2 2.3 2.4"},
		"the cluster":                         {plain, usual, object.PreferCluster, inA, "1.1 1.2", "0: 1.1 1.2, 1: 2.1 2.2 2.3 2.4"},
		"the zone":                            {plain, usual, object.PreferZone, inA, "1.1 2.1", "0: 1.1 2.1, 1: 1.2, 2: 2.2, 3: 2.3 2.4"},
		"another zone":                        {plain, usual, object.PreferZone, inB, "1.2 2.2", "0: 1.2 2.2, 1: 1.1, 2: 2.1, 3: 2.3 2.4"},
		"a zone abroad":                       {plain, usual, object.PreferZone, inC, "2.3", "0: 2.3, 1: 1.1 1.2, 3: 2.1 2.2 2.4"},
		"an unknown client":                   {plain, usual, object.PreferZone, nowhere, "1.1 1.2", "0: 1.1 1.2, 1: 2.1 2.2 2.3 2.4"},
		"the import's own cluster":            {cluster, usual, object.PreferNone, inA, "1.1 1.2", "0: 1.1 1.2, 1: 2.1 2.2 2.3 2.4"},
		"the import's own cluster, as a tier": {local, usual, object.PreferNone, inA, "1.1 1.2", "0: 1.1 1.2, 1: 2.1 2.2 2.3 2.4"},
		"tiers are the controller's":          {tiers, usual, object.PreferDefault, inA, "1.1 1.2 2.1 2.2 2.3 2.4", "0: 1.1 1.2 2.1 2.2 2.3 2.4"},
		"the import's zone":                   {sameZone, usual, object.PreferNone, inA, "1.1 2.1", "0: 1.1 2.1, 1: 1.2, 2: 2.2, 3: 2.3 2.4"},
		"the import's both":                   {both, usual, object.PreferZone, inA, "1.1 1.2", "0: 1.1 1.2, 1: 2.1 2.2 2.3 2.4"},
		"the import wants nothing":            {none, usual, object.PreferZone, inA, "1.1 1.2 2.1 2.2 2.3 2.4", "0: 1.1 1.2 2.1 2.2 2.3 2.4"},
		"no cluster, but the zone":            {noneButZone, usual, object.PreferCluster, inA, "1.1 2.1", "0: 1.1 2.1, 1: 1.2, 2: 2.2, 3: 2.3 2.4"},
		"an unknown preference":               {unknown, usual, object.PreferCluster, inA, "1.1 1.2", "0: 1.1 1.2, 1: 2.1 2.2 2.3 2.4"},
		"nothing at home":                     {plain, usual[1:], object.PreferCluster, inA, "2.1 2.2 2.3 2.4", "1: 2.1 2.2 2.3 2.4"},
		"nothing in the zone":                 {plain, usual[:1], object.PreferZone, inC, "1.1 1.2", "1: 1.1 1.2"},
		"only in the region":                  {plain, []string{w("10.2.0.2@b", "10.2.0.3@c")}, object.PreferZone, inA, "2.2", "2: 2.2, 3: 2.3"},
		"none is ready at home":               {plain, []string{e(demoted), w("10.2.0.1@b")}, object.PreferZone, inA, "2.1", "2: 2.1"},
		"none is ready anywhere":              {plain, []string{e(demoted), w(strings.Replace(demoted, "10.1", "10.2", 1))}, object.PreferCluster, inA, "1.1", "0: 1.1, 1: 2.1"},
		"no endpoint has a zone":              {plain, []string{e("10.1.0.1"), w("10.2.0.1")}, object.PreferZone, inA, "1.1", "1: 1.1, 3: 2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := snapshotOf(zoned(t, test.raw, test.slices...))
			client := record.Client{Size: 65535, Place: east.Place("east", netip.MustParseAddr(test.client))}
			look := func(qname string, qtype uint16) record.Answer {
				q := question(qname, qtype)
				q.Prefer = test.prefer
				return lookup(snapshot, q, client)
			}
			if got := tiersOf(look("db.demo.svc."+zone, dns.TypeA)); got != test.a {
				t.Errorf("A: got %s, want %s", got, test.a)
			}
			for _, qname := range []string{"db.demo.svc." + zone, "_sql._TCP.db.demo.svc." + zone} {
				reply := look(qname, dns.TypeSRV)
				if got := tiersOf(reply); got != test.srv {
					t.Errorf("SRV of %s: got %s, want %s", qname, got, test.srv)
				}
				if len(reply.Extra) != len(reply.Answer) {
					t.Errorf("SRV of %s: %d targets have %d addresses", qname, len(reply.Answer), len(reply.Extra))
				}
			}
			// Names of endpoints are of no tier.
			for _, host := range []string{"10-1-0-1.east", "10-2-0-1.west"} {
				qname := host + ".db.demo.svc." + zone
				plain := lookup(snapshot, question(qname, dns.TypeA), record.Client{Size: 65535})
				if got, want := len(look(qname, dns.TypeA).Answer), len(plain.Answer); got != want {
					t.Errorf("%s: got %d addresses, want %d", qname, got, want)
				}
			}
		})
	}
}

// tiersOf is the endpoints of an answer, and their priorities where they have some, without what all have in common.
func tiersOf(reply record.Answer) string {
	byPriority := map[uint16][]string{}
	var addresses []string
	for _, rr := range reply.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			addresses = append(addresses, fmt.Sprintf("%d.%d", rr.A[1], rr.A[3]))
		case *dns.SRV:
			var second, third, last int
			if _, err := fmt.Sscanf(rr.Target, "10-%d-%d-%d.", &second, &third, &last); err != nil || rr.Weight != 100 {
				return rr.String()
			}
			byPriority[rr.Priority] = append(byPriority[rr.Priority], fmt.Sprintf("%d.%d", second, last))
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

// TestTiersOfEachFamily: a client of one family does not go without because the other one is nearer.
func TestTiersOfEachFamily(t *testing.T) {
	snapshot := snapshotOf(zoned(t, "spec: "+sql, from("east", "IPv4", sqlPorts, "10.1.0.1@a"),
		from("west", "IPv6", sqlPorts, "fd00::1@a")))
	for qtype, want := range map[uint16]string{dns.TypeA: "10.1.0.1", dns.TypeAAAA: "fd00::1"} {
		q := question("db.demo.svc."+zone, qtype)
		q.Prefer = object.PreferCluster
		if reply := lookup(snapshot, q, record.Client{Size: 512, Place: east.Place("east", netip.Addr{})}).Answer; len(
			reply) != 1 || dataOf(reply[0]) != want {
			t.Errorf("got %v, want %s", reply, want)
		}
	}
}

// TestZonesOfSlices: slices differ by their zones where these are kept.
func TestZonesOfSlices(t *testing.T) {
	read := func(text string, zones bool) *object.Endpoints {
		slice := new(discoveryv1.EndpointSlice)
		unmarshal(t, text, slice)
		if zones {
			return object.FromEndpointSlice(slice, true)
		}
		return object.FromEndpointSlice(slice, false)
	}
	a, b := from("east", "IPv4", sqlPorts, "10.1.0.1@a"), from("east", "IPv4", sqlPorts, "10.1.0.1@b")
	bare := from("east", "IPv4", sqlPorts, "10.1.0.1")
	if !read(a, true).Equal(read(a, true)) || read(a, true).Equal(read(b, true)) ||
		read(a, true).Equal(read(bare, true)) {
		t.Error("zones do not count")
	}
	if !read(a, false).Equal(read(b, false)) || !read(bare, true).Equal(read(bare, false)) {
		t.Error("zones count where they are not kept")
	}
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("10.1.%d.%d@zone-%d", i/250, 1+i%250, i))
	}
	if got := read(from("east", "IPv4", sqlPorts, many...), true).Len(); got != 300 {
		t.Errorf("%d of 300 endpoints in as many zones", got)
	}
}
