// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// build makes the service db of a spec and slices, each given as YAML without what is the same in all.
func build(t *testing.T, spec string, endpointSlices ...string) *record.Service {
	t.Helper()
	raw := new(mcsv1beta1.ServiceImport)
	unmarshal(t, "metadata: {name: db, namespace: demo}\nspec: "+spec, raw)
	var all []*object.Endpoints
	for _, text := range endpointSlices {
		slice := new(discoveryv1.EndpointSlice)
		unmarshal(t, text, slice)
		all = append(all, object.FromEndpointSlice(slice, false))
	}
	return record.Build(config, object.FromServiceImport(raw), all)
}

func unmarshal(t testing.TB, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// from is the YAML of a slice of a cluster.
func from(cluster, family, ports string, endpoints ...string) string {
	text := "addressType: " + family + "\nports: " + ports + "\nendpoints: [" + strings.Join(endpoints, ", ") + "]\n"
	if cluster != "" {
		text += "metadata: {labels: {multicluster.kubernetes.io/source-cluster: '" + cluster + "'}}\n"
	}
	return text
}

const (
	sql      = "{type: Headless, ports: [{name: sql, port: 5432}]}"
	sqlPorts = "[{name: sql, port: 5432}]"
)

func TestBuild(t *testing.T) {
	tests := []struct {
		name   string
		spec   string
		slices []string
		want   string // the zone, a record in each line, without what all have in common
		skips  string
	}{
		{
			"an endpoint that is not ready does not appear", sql,
			[]string{from("east", "IPv4", sqlPorts,
				"{addresses: [10.1.0.1]}", "{addresses: [10.1.0.2], conditions: {ready: false}}",
				"{addresses: [10.1.0.3], conditions: {ready: false, serving: false, terminating: true}}",
				"{addresses: [10.1.0.4], conditions: {ready: false, serving: true}}")},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1
			db SRV 5432 10-1-0-1.east.db
			_sql._tcp.db SRV 5432 10-1-0-1.east.db`, "",
		},
		{
			"those that are serving and terminating answer for a name that has none", sql,
			[]string{
				from("east", "IPv4", sqlPorts,
					"{addresses: [10.1.0.1], conditions: {ready: false, serving: true, terminating: true}}"),
				from("west", "IPv4", sqlPorts, "{addresses: [10.2.0.1]}"),
			},
			`db A 10.2.0.1
			10-1-0-1.east.db A 10.1.0.1
			10-2-0-1.west.db A 10.2.0.1
			db SRV 5432 10-2-0-1.west.db
			_sql._tcp.db SRV 5432 10-2-0-1.west.db`, "",
		},
		{
			"where all are terminating they share", sql,
			[]string{
				from("east", "IPv4", sqlPorts,
					"{addresses: [10.1.0.1], conditions: {ready: false, serving: true, terminating: true}}"),
			},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1
			db SRV 5432 10-1-0-1.east.db
			_sql._tcp.db SRV 5432 10-1-0-1.east.db`, "",
		},
		{
			"a host name has the ready of its addresses", sql,
			[]string{
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1], hostname: a}",
					"{addresses: [10.1.0.2], hostname: a, conditions: {ready: false, serving: true, terminating: true}}"),
			},
			`db A 10.1.0.1
			a.east.db A 10.1.0.1
			db SRV 5432 a.east.db
			_sql._tcp.db SRV 5432 a.east.db`, "",
		},
		{
			"endpoints repeated across slices appear once", sql,
			[]string{
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1]}"),
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1]}",
					"{addresses: [10.1.0.1], hostname: 10-1-0-1}"),
			},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1
			db SRV 5432 10-1-0-1.east.db
			_sql._tcp.db SRV 5432 10-1-0-1.east.db`, "",
		},
		{
			"an address of two hosts is one of the service's", sql,
			[]string{
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1], hostname: a}"),
				from("west", "IPv4", sqlPorts, "{addresses: [10.1.0.1], hostname: a}"),
			},
			`db A 10.1.0.1
			a.east.db A 10.1.0.1
			a.west.db A 10.1.0.1
			db SRV 5432 a.east.db
			db SRV 5432 a.west.db
			_sql._tcp.db SRV 5432 a.east.db
			_sql._tcp.db SRV 5432 a.west.db`, "",
		},
		{
			"both families of a host are one target", sql,
			[]string{
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1], hostname: a}"),
				from("east", "IPv6", "[{name: sql, port: 5432}]", "{addresses: ['fd00::1'], hostname: a}"),
			},
			`db A 10.1.0.1
			db AAAA fd00::1
			a.east.db A 10.1.0.1
			a.east.db AAAA fd00::1
			db SRV 5432 a.east.db
			_sql._tcp.db SRV 5432 a.east.db`, "",
		},
		{
			"ports in several slices of an endpoint are all its ports",
			"{type: Headless, ports: [{name: sql, port: 5432}, {name: web, port: 80}]}",
			[]string{
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1]}"),
				from("east", "IPv4", "[{name: web, port: 8080}]", "{addresses: [10.1.0.1]}"),
			},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1
			db SRV 5432 10-1-0-1.east.db
			db SRV 8080 10-1-0-1.east.db
			_sql._tcp.db SRV 5432 10-1-0-1.east.db
			_web._tcp.db SRV 8080 10-1-0-1.east.db`, "",
		},
		{
			"each pair of target and port number appears once",
			"{type: Headless, ports: [{name: tcp, port: 53}, {name: udp, port: 53, protocol: UDP}]}",
			[]string{
				from("east", "IPv4", "[{name: tcp, port: 53}, {name: udp, port: 53, protocol: UDP}]",
					"{addresses: [10.1.0.1]}"),
			},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1
			db SRV 53 10-1-0-1.east.db
			_tcp._tcp.db SRV 53 10-1-0-1.east.db
			_udp._udp.db SRV 53 10-1-0-1.east.db`, "",
		},
		{
			"ports that the import does not declare do not leak", sql,
			[]string{
				from("east", "IPv4",
					"[{name: sql, port: 5432}, {name: admin, port: 1}, {name: sql, port: 1, protocol: UDP}]",
					"{addresses: [10.1.0.1]}"),
			},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1
			db SRV 5432 10-1-0-1.east.db
			_sql._tcp.db SRV 5432 10-1-0-1.east.db`, "",
		},
		{
			"a headless import that declares no ports has those of its slices", "{type: Headless, ports: []}",
			[]string{
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1]}"),
				from("west", "IPv4", "[]", "{addresses: [10.2.0.1]}"),
			},
			`db A 10.1.0.1
			db A 10.2.0.1
			10-1-0-1.east.db A 10.1.0.1
			10-2-0-1.west.db A 10.2.0.1
			db SRV 5432 10-1-0-1.east.db
			_sql._tcp.db SRV 5432 10-1-0-1.east.db`, "",
		},
		{
			"a headless import whose ports are all invalid has none", "{type: Headless, ports: [{name: sql, port: 0}]}",
			[]string{from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1]}")},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1`, "invalid_port=1",
		},
		{
			"a headless import has the families that it lists", "{type: Headless, ipFamilies: [IPv4], ports: []}",
			[]string{
				from("east", "IPv4", "[]", "{addresses: [10.1.0.1], hostname: a}"),
				from("east", "IPv6", sqlPorts, "{addresses: ['fd00::1'], hostname: a}"),
			},
			`db A 10.1.0.1
			a.east.db A 10.1.0.1`, "",
		},
		{
			"a headless import that lists IPv6 alone", "{type: Headless, ipFamilies: [IPv6], ports: []}",
			[]string{
				from("east", "IPv4", "[]", "{addresses: [10.1.0.1]}"),
				from("west", "IPv6", "[]", "{addresses: ['fd00::1'], hostname: a}"),
			},
			`db AAAA fd00::1
			a.west.db AAAA fd00::1`, "",
		},
		{
			"a headless import that lists both families", "{type: Headless, ipFamilies: [IPv6, IPv4], ports: []}",
			[]string{
				from("east", "IPv4", "[]", "{addresses: [10.1.0.1]}"),
				from("west", "IPv6", "[]", "{addresses: ['fd00::1'], hostname: a}"),
			},
			`db A 10.1.0.1
			db AAAA fd00::1
			10-1-0-1.east.db A 10.1.0.1
			a.west.db AAAA fd00::1`, "",
		},
		{
			"an unnamed port has no name", "{type: Headless, ports: [{port: 80}]}",
			[]string{from("east", "IPv4", "[{port: 8080, protocol: TCP}]", "{addresses: [10.1.0.1]}")},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1
			db SRV 8080 10-1-0-1.east.db`, "",
		},
		{
			"a slice without source cluster never yields an empty label", sql,
			[]string{
				from("", "IPv4", sqlPorts, "{addresses: [10.1.0.1], hostname: a}"),
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.2], hostname: a}"),
			},
			`db A 10.1.0.1
			db A 10.1.0.2
			a.east.db A 10.1.0.2
			db SRV 5432 a.east.db
			_sql._tcp.db SRV 5432 a.east.db`, "missing_source_cluster=1",
		},
		{
			"a source cluster that is none", sql,
			[]string{
				from("a.b.c", "IPv4", sqlPorts, "{addresses: [10.1.0.1]}"),
				from("east.", "IPv4", sqlPorts, "{addresses: [10.1.0.2]}"),
				from("a_b", "IPv4", sqlPorts, "{addresses: [10.1.0.3]}"),
			},
			`db A 10.1.0.1
			db A 10.1.0.2
			db A 10.1.0.3`, "invalid_source_cluster=3",
		},
		{
			"a cluster id of two labels", sql,
			[]string{from("east.eu", "IPv4", sqlPorts, "{addresses: [10.1.0.1]}")},
			`db A 10.1.0.1
			10-1-0-1.east.eu.db A 10.1.0.1
			db SRV 5432 10-1-0-1.east.eu.db
			_sql._tcp.db SRV 5432 10-1-0-1.east.eu.db`, "",
		},
		{
			"IPv6 host labels are valid labels", "{type: Headless, ports: []}",
			[]string{
				from("east", "IPv6", "[]", "{addresses: ['2001:db8::']}", "{addresses: ['2001:db8::1']}",
					"{addresses: ['fd00::a:0:0:1']}"),
			},
			`db AAAA 2001:db8::
			db AAAA 2001:db8::1
			db AAAA fd00::a:0:0:1
			2001-db8--0.east.db AAAA 2001:db8::
			2001-db8--1.east.db AAAA 2001:db8::1
			fd00--a-0-0-1.east.db AAAA fd00::a:0:0:1`, "",
		},
		{
			"slices of names are left out", "{type: Headless, ports: []}",
			[]string{from("east", "FQDN", "[]", "{addresses: [a.example.org]}")},
			"", "invalid_address_type=1",
		},
		{
			"addresses that are none are left out", "{type: Headless, ports: []}",
			[]string{
				from("east", "IPv4", "[]",
					"{addresses: [x, 127.0.0.1, 169.254.0.1, 224.0.0.1, 0.0.0.0, 'fd00::1', 10.1.0.1]}"),
				from("east", "IPv6", "[]", "{addresses: ['fe80::1', '::ffff:10.0.0.1', '::1']}"),
			},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1`, "invalid_address=9",
		},
		{
			"a hostname that is no label", "{type: Headless, ports: []}",
			[]string{
				from("east", "IPv4", "[]", "{addresses: [10.1.0.1], hostname: a.b}",
					"{addresses: [10.1.0.2], hostname: UP}"),
			},
			`db A 10.1.0.1
			db A 10.1.0.2
			10-1-0-1.east.db A 10.1.0.1
			up.east.db A 10.1.0.2`, "invalid_hostname=1",
		},
		{
			"a hostname that is the label of another endpoint's address", sql,
			[]string{
				from("east", "IPv4", sqlPorts, "{addresses: [10.1.0.1], hostname: 10-1-0-2}",
					"{addresses: [10.1.0.2]}"),
			},
			`db A 10.1.0.1
			db A 10.1.0.2
			10-1-0-1.east.db A 10.1.0.1
			10-1-0-2.east.db A 10.1.0.2
			db SRV 5432 10-1-0-1.east.db
			db SRV 5432 10-1-0-2.east.db
			_sql._tcp.db SRV 5432 10-1-0-1.east.db
			_sql._tcp.db SRV 5432 10-1-0-2.east.db`, "invalid_hostname=1",
		},
		{
			"names that are too long are left out", "{type: Headless, ports: [{name: sql, port: 1}]}",
			[]string{
				from(strings.Repeat("c", 31)+"."+strings.Repeat("c", 31), "IPv4", "[{name: sql, port: 1}]",
					"{addresses: [10.1.0.1]}"),
			},
			`db A 10.1.0.1
			10-1-0-1.` + strings.Repeat("c", 31) + "." + strings.Repeat("c", 31) + `.db A 10.1.0.1
			db SRV 1 10-1-0-1.` + strings.Repeat("c", 31) + "." + strings.Repeat("c", 31) + `.db
			_sql._tcp.db SRV 1 10-1-0-1.` + strings.Repeat("c", 31) + "." + strings.Repeat("c", 31) + `.db`, "",
		},
		{
			"ports without a number, and ports that are none",
			"{type: Headless, ports: [{name: a, port: 1}, {name: b, port: 0}, {name: a_b, port: 1}]}",
			[]string{from("east", "IPv4", "[{name: a}, {name: a, port: 70000}, {name: a, port: 1, protocol: X}]",
				"{addresses: [10.1.0.1]}")},
			`db A 10.1.0.1
			10-1-0-1.east.db A 10.1.0.1`, "invalid_port=4",
		},
		{
			"ClusterSetIP", "{type: ClusterSetIP, ips: [10.42.0.1, 'fd00:42::1', 10.42.0.1], ports: [{name: http, port: 80}, {port: 53, protocol: UDP}]}",
			[]string{from("east", "IPv4", "[{name: http, port: 80}]", "{addresses: [10.1.0.1], hostname: a}")},
			`db A 10.42.0.1
			db AAAA fd00:42::1
			db SRV 53 db
			db SRV 80 db
			_http._tcp.db SRV 80 db`, "",
		},
		{
			"spec.ips are validated",
			"{type: ClusterSetIP, ports: [], ips: [None, '', 0.0.0.0, '::', 127.0.0.1, '::1', 169.254.1.1, " +
				"'fe80::1', 224.0.0.1, 'ff02::1', 255.255.255.255, '::ffff:10.0.0.1', 'fd00::1%eth0', 10.42.0.1]}", nil,
			`db A 10.42.0.1`, "invalid_ip=13",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			service := build(t, tc.spec, tc.slices...)
			snapshot := snapshotOf(service)
			var got []string
			for _, rr := range walk(snapshot) {
				data := strings.TrimPrefix(rr.String(), rr.Header().String())
				data = strings.TrimPrefix(data, "0 100 ")
				line := strings.Join([]string{rr.Header().Name, dns.TypeToString[rr.Header().Rrtype], data}, " ")
				got = append(got, strings.ReplaceAll(line, ".demo.svc.clusterset.local.", ""))
			}
			slices.Sort(got)
			var want []string
			for line := range strings.Lines(tc.want) {
				want = append(want, strings.TrimSpace(line))
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the zone is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if got := skips(service.Skips); got != tc.skips {
				t.Errorf("left out: %s, want %s", got, tc.skips)
			}
			checkZone(t, snapshot)
		})
	}
}

func TestImportsThatCannotBeServedAreCounted(t *testing.T) {
	for text, want := range map[string]string{
		"metadata: {name: a.b, namespace: demo}\nspec: {type: Headless, ports: []}":   "invalid_name=1",
		"metadata: {name: web, namespace: demo}\nspec: {type: Other, ports: []}":      "invalid_type=1",
		"metadata: {name: -web, namespace: demo}\nspec: {type: Headless, ports: []}":  "invalid_name=1",
		"metadata: {name: web, namespace: ''}\nspec: {type: ClusterSetIP, ports: []}": "invalid_name=1",
	} {
		raw := new(mcsv1beta1.ServiceImport)
		unmarshal(t, text, raw)
		imported := object.FromServiceImport(raw)
		service := record.Build(config, imported, nil)
		if got := skips(service.Skips); got != want {
			t.Errorf("%s\nleft out: %s, want %s", text, got, want)
		}
		snapshot := snapshotOf(service)
		if records := walk(snapshot); len(records) > 0 {
			t.Errorf("%s\nhas records %v", text, records)
		}
		totals := snapshot.State().Totals
		if totals.Skips[object.InvalidName]+totals.Skips[object.InvalidType] != 1 {
			t.Errorf("%s\nis not counted", text)
		}
	}
}

func TestObjectsAreNotChanged(t *testing.T) {
	raw, slice := new(mcsv1beta1.ServiceImport), new(discoveryv1.EndpointSlice)
	unmarshal(t, "metadata: {name: db, namespace: demo}\nspec: {type: Headless, ips: [b, a], ports: [{name: B, port: 2}, {name: a, port: 1}]}", raw)
	unmarshal(t, from("east", "IPv4", "[{name: b, port: 2}, {name: a, port: 1}]", "{addresses: [10.1.0.2]}",
		"{addresses: [10.1.0.1]}"), slice)
	objectBefore, sliceBefore := raw.DeepCopy(), slice.DeepCopy()
	imported, packed := object.FromServiceImport(raw), object.FromEndpointSlice(slice, false)
	again := object.FromEndpointSlice(slice, false)
	record.Build(config, imported, []*object.Endpoints{packed})
	if !packed.Equal(again) {
		t.Error("building changed the slice")
	}
	before, err := yaml.Marshal([]any{objectBefore, sliceBefore})
	if err != nil {
		t.Fatal(err)
	}
	after, err := yaml.Marshal([]any{raw, slice})
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Errorf("the objects are now\n%s\nand were\n%s", after, before)
	}
}
