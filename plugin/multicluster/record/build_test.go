// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

const sql = recordtest.SQL

// build builds the service db from a spec and slices.
func build(spec string, endpointSlices ...*discoveryv1.EndpointSlice) *record.Service {
	return recordtest.Build(config, "db", "spec: "+spec, endpointSlices...)
}

func TestBuild(t *testing.T) {
	none, long := recordtest.Headless(""), strings.Repeat("c", 31)+"."+strings.Repeat("c", 31)
	const one, ofOne = "A 10.1.0.1; 10-1-0-1.east A 10.1.0.1", "A 10.1.0.1; 10-1-0-1.east A 10.1.0.1; sql SRV 5432 10-1-0-1.east"
	tests := []struct{ name, spec, slices, want, skips string }{ // slices as in recordtest, want as in zoneText
		{
			"those that are serving and terminating answer for a name that has none", sql, "east: ~10.1.0.1; west: 10.2.0.1",
			"A 10.2.0.1; 10-1-0-1.east A 10.1.0.1; 10-2-0-1.west A 10.2.0.1; sql SRV 5432 10-2-0-1.west", "",
		},
		{
			"a host name has the ready of its addresses", sql, "east: 10.1.0.1/a ~10.1.0.2/a",
			"A 10.1.0.1; a.east A 10.1.0.1; sql SRV 5432 a.east", "",
		},
		{
			"an address of two hosts is one of the service's", sql, "east: 10.1.0.1/a; west: 10.1.0.1/a",
			"A 10.1.0.1; a.east A 10.1.0.1; a.west A 10.1.0.1; sql SRV 5432 a.east a.west", "",
		},
		{
			"both families of a host are one target", sql, "east: 10.1.0.1/a; east: fd00::1/a",
			"A 10.1.0.1; AAAA fd00::1; a.east A 10.1.0.1; a.east AAAA fd00::1; sql SRV 5432 a.east", "",
		},
		{
			"ports in several slices of an endpoint are all its ports", recordtest.Headless("web=80 sql=5432"), "east: 10.1.0.1; east[web=8080]: 10.1.0.1 10.1.0.2",
			ofOne + "; A 10.1.0.2; 10-1-0-2.east A 10.1.0.2; web SRV 8080 10-1-0-1.east 10-1-0-2.east", "",
		},
		{"ports that the import does not declare do not leak", sql, "east[sql=5432 admin=1 sql=1/UDP]: 10.1.0.1", ofOne, ""},
		{
			"a headless import that declares no ports has those of its slices", none, "east: 10.1.0.1; west[]: 10.2.0.1",
			"A 10.1.0.1 10.2.0.1; 10-1-0-1.east A 10.1.0.1; 10-2-0-1.west A 10.2.0.1; sql SRV 5432 10-1-0-1.east", "",
		},
		{"an annotation that is not valid", sql, "east priority=high weight=: 10.1.0.1", ofOne, ""},
		{"a headless import whose ports are all invalid has none", recordtest.Headless("sql=0"), "east: 10.1.0.1", one, "invalid_port:1"},
		{
			"a headless import that lists IPv6 alone", "{type: Headless, ports: [], ipFamilies: [IPv6]}", "east: 10.1.0.1; west[]: fd00::1/a",
			"AAAA fd00::1; a.west AAAA fd00::1", "",
		},
		{
			"endpoints without a valid source cluster have no host name", sql, ": 10.1.0.1/a; east: 10.1.0.2/a; a.b.c: 10.1.0.3; east.: 10.1.0.4; a_b: 10.1.0.5",
			"A 10.1.0.1 10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5; a.east A 10.1.0.2; sql SRV 5432 a.east", "invalid_source_cluster:4",
		},
		{
			"a cluster id of two labels with capitals, as in the examples of the specification", sql, "clusterA.EU: 10.1.0.1/my-pet-1",
			"A 10.1.0.1; my-pet-1.clustera.eu A 10.1.0.1; sql SRV 5432 my-pet-1.clustera.eu", "",
		},
		{
			"IPv6 host labels are valid labels", none, "east[]: ::2 2001:db8:: 2001:db8::1 fd00::a:0:0:1",
			"AAAA ::2 2001:db8:: 2001:db8::1 fd00::a:0:0:1; 0--2.east AAAA ::2; 2001-db8--0.east AAAA 2001:db8::; " +
				"2001-db8--1.east AAAA 2001:db8::1; fd00--a-0-0-1.east AAAA fd00::a:0:0:1", "",
		},
		{
			"addresses that are none are left out", none,
			"east[]: x 127.0.0.1 169.254.0.1 224.0.0.1 0.0.0.0 10.1.0.1; east[]: fe80::1 ::ffff:10.0.0.1 ::1 10.1.0.1",
			one, "",
		},
		{
			"a hostname that is no label", none, "east[]: 10.1.0.1/a.b 10.1.0.2/UZ",
			"A 10.1.0.1 10.1.0.2; 10-1-0-1.east A 10.1.0.1; uz.east A 10.1.0.2", "",
		},
		{
			"a hostname that is the label of another endpoint's address", sql, "east: 10.1.0.1/10-1-0-2 10.1.0.2",
			"A 10.1.0.1 10.1.0.2; 10-1-0-1.east A 10.1.0.1; 10-1-0-2.east A 10.1.0.2; sql SRV 5432 10-1-0-1.east 10-1-0-2.east",
			"",
		},
		{
			"the longest id of a cluster", sql, long + ": 10.1.0.1",
			"A 10.1.0.1; 10-1-0-1." + long + " A 10.1.0.1; sql SRV 5432 10-1-0-1." + long, "",
		},
		{
			"ports without a number, and ports that are none", recordtest.Headless("a=1 b=0 a_b=1 =1"), "east[a a=70000 a=1/X]: 10.1.0.1",
			one, "invalid_port:4",
		},
		{
			"ClusterSetIP", recordtest.ClusterSetIP("10.42.0.1 fd00:42::1 10.42.0.1", "HTTP=65535 =53/UDP b=0 "+strings.Repeat("c", 63)+"=1"),
			"east[http=80]: 10.1.0.1/a", "A 10.42.0.1; AAAA fd00:42::1; SRV 53 db; http SRV 65535 db", "invalid_port:2",
		},
		{"a slice of names", none, "east[]: a.example.org", "", "invalid_address_type:1"},
		{
			"spec.ips are validated",
			"{type: ClusterSetIP, ports: [], ips: [None, '', 0.0.0.0, '::', 127.0.0.1, '::1', 169.254.1.1, " +
				"'fe80::1', 224.0.0.1, 'ff02::1', 255.255.255.255, '::ffff:10.0.0.1', 'fd00::1%eth0', 10.42.0.1]}",
			"", "A 10.42.0.1", "invalid_ip:13",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			service := build(tc.spec, recordtest.Slices(tc.slices)...)
			snapshot := snapshotOf(service)
			var got []string
			for _, rr := range walk(snapshot) {
				data := strings.TrimPrefix(rr.String(), rr.Header().String())
				data = strings.TrimPrefix(data, "0 100 ")
				line := strings.Join([]string{rr.Header().Name, dns.TypeToString[rr.Header().Rrtype], data}, " ")
				got = append(got, strings.ReplaceAll(line, ".demo.svc.clusterset.local.", ""))
			}
			slices.Sort(got)
			if want := zoneText(tc.want); !slices.Equal(got, want) {
				t.Errorf("the zone is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if got := fmt.Sprint(service.Skips); got != "map["+tc.skips+"]" {
				t.Errorf("left out: %s, want %s", got, tc.skips)
			}
			checkZone(t, snapshot)
		})
	}
}

// zoneText parses record sets of the service db: the owner (default db), the type, the port of SRV, and the data of
// each record. It adds the SRV records of a port to db as well.
func zoneText(text string) (lines []string) {
	for set := range strings.SplitSeq(text, "; ") {
		fields := strings.Fields(set)
		if len(fields) == 0 {
			continue
		}
		owner := ""
		if !slices.Contains([]string{"A", "AAAA", "SRV"}, fields[0]) {
			owner, fields = fields[0]+".", fields[1:]
		}
		kind, data := fields[0]+" ", fields[1:]
		if kind == "SRV " {
			kind, data = kind+data[0]+" ", data[1:]
		}
		for _, each := range data {
			if strings.HasPrefix(kind, "SRV") {
				each = strings.TrimPrefix(strings.TrimSuffix(each, "db")+".db", ".")
				lines = append(lines, "db "+kind+each)
				if owner != "" && owner[0] != '_' {
					owner = "_" + owner + "_tcp."
				}
			}
			lines = append(lines, owner+"db "+kind+each)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func TestImportsThatCannotBeServedAreCounted(t *testing.T) {
	for meta, want := range map[string]string{
		"name: a.b, namespace: demo":                  "map[invalid_name:1]",
		"name: web, namespace: ''":                    "map[invalid_name:1]",
		"name: web, namespace: submariner-operator":   "map[bookkeeping:1]",
		"name: web, namespace: submariner-k8s-broker": "map[bookkeeping:1]",
		"name: web, namespace: demo, labels: {lighthouse.submariner.io/sourceNamespace: other}":      "map[bookkeeping:1]",
		"name: web, namespace: demo, annotations: {lighthouse.submariner.io/sourceNamespace: other}": "map[bookkeeping:1]",
		"name: web, namespace: demo, labels: {lighthouse.submariner.io/sourceNamespace: demo}":       "map[]",
	} {
		raw := new(mcsv1beta1.ServiceImport)
		recordtest.Unmarshal("metadata: {"+meta+"}\nspec: "+recordtest.ClusterSetIP("10.42.0.1", ""), raw)
		index := snapshotOf(record.Build(config, record.FromServiceImport(raw), nil))
		if got, served := fmt.Sprint(index.Skips()), len(walk(index)) > 0; got != want || served != (want == "map[]") {
			t.Errorf("%s\nleft out: %s, want %s; the records are %v", meta, got, want, walk(index))
		}
	}
}

// TestNamesInTheRoot: names in the zone "." end in a single dot.
func TestNamesInTheRoot(t *testing.T) {
	service := recordtest.Build(&record.Config{Zones: []string{"."}, TTL: 5}, "db", "spec: "+sql, recordtest.Slice("east: 10.1.0.1"))
	q := record.Question{Name: "db.demo.svc.", Type: dns.TypeSRV, Client: record.Client{Size: 512}}
	q.Request.Parse("db.demo.svc")
	q.Answer.Result = service.Lookup(&q)
	all := slices.Concat(service.Records(0), q.Answer.Answer, q.Answer.Extra)
	for _, rr := range all {
		if strings.Contains(rr.String(), "..") {
			t.Errorf("got %v", rr)
		}
	}
	if len(q.Answer.Answer) != 1 || len(q.Answer.Extra) != 1 {
		t.Errorf("got %v", all)
	}
}

func TestANameTooLongForOneZoneIsInNone(t *testing.T) {
	long := strings.Repeat("x", 63) // leaves 43 octets for host labels and cluster ids; the label of an address takes 8
	raw, slice := new(mcsv1beta1.ServiceImport), recordtest.Slice("east["+long[:39]+"=1]: 10.1.0.1/"+long[:39]+" 10.1.0.2/"+long[:40])
	other := recordtest.Slice(long[:36] + "[]: 10.1.0.3")
	recordtest.Unmarshal("metadata: {name: "+long+", namespace: "+long+"}\nspec: {type: Headless, ports: []}", raw)
	both := &record.Config{Zones: []string{zone, strings.Repeat("zone.", 12) + zone}, TTL: 5}
	service := record.Build(both, record.FromServiceImport(raw), []*record.Endpoints{
		record.FromEndpointSlice(slice, false), record.FromEndpointSlice(other, false),
	})
	if got := fmt.Sprint(service.Skips); got != "map[name_too_long:3]" {
		t.Errorf("left out: %s", got)
	}
	for number := range both.Zones {
		if got := text(service.Records(number)); len(got) != 4 || !strings.HasPrefix(got[0], long[:39]+".east.") {
			t.Errorf("zone %d has %q, want three addresses of the service and one of a host", number, got)
		}
	}
	longer := &record.Config{Zones: []string{strings.Repeat("zone.", 24) + zone}, TTL: 5}
	if got := fmt.Sprint(record.Build(longer, record.FromServiceImport(raw), nil).Skips); got != "map[name_too_long:1]" {
		t.Errorf("of a service whose own name is too long is left out: %s", got)
	}
}
