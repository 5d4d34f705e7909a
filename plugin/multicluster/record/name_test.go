// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

func TestParse(t *testing.T) {
	kinds := map[record.Kind]string{
		record.KindApex: "apex", record.KindNamespace: "namespace", record.KindService: "service", record.KindCluster: "cluster",
		record.KindHost: "host", record.KindPort: "port", record.KindProtocol: "protocol", record.KindTopologyZone: "zone",
	}
	for _, tc := range []struct{ below, want string }{ // kind, parts, service and namespace; empty if the name is not valid
		{"", "apex"},
		{"a.dns-version", ""},
		{"dns", "apex dns"},
		{"ns.dns", "apex ns.dns"},
		{"a.ns.dns", ""},
		{"svc", "apex svc"},
		{"demo.svc", "namespace demo"},
		{"web.demo.svc", "service web demo"},
		{"east.web.demo.svc", "cluster east web demo"},
		{"db-0.east.web.demo.svc", "host db-0 east web demo"},
		{"db-0.east.eu.web.demo.svc", "host db-0 east.eu web demo"},
		{"a.db-0.east.eu.web.demo.svc", ""},
		{"_tcp.web.demo.svc", "protocol tcp web demo"},
		{"_http._tcp.web.demo.svc", "port http tcp web demo"},
		{"http._tcp.web.demo.svc", ""},
		{"_a._http._tcp.web.demo.svc", ""},
		{"_.web.demo.svc", ""},
		{"_http._.web.demo.svc", ""},
		{"_zone.web.demo.svc", "zone web demo"},
		{"prefer._zone.web.demo.svc", "zone prefers web demo"},
		{"eu-1a.pin._zone.web.demo.svc", "zone eu-1a web demo"},
		{"corp.example.com.PREFER._zone.web.demo.svc", "zone corp.example.com prefers web demo"},
		{"eu-1a._zone.web.demo.svc", ""},
		{"._zone.web.demo.svc", ""},
		{"a.pin.._zone.web.demo.svc", ""},
		{"eu-1a.pin._zone.svc", "cluster eu-1a pin _zone"},
		{"web.demo", ""},
		{"*.demo.svc", "service * demo"},
		{".svc", ""},
		{".demo.svc", ""},
		{"a..web.demo.svc", ""},
		{`a\.b.demo.svc`, `cluster a\ b demo`},
	} {
		got := parse(tc.below)
		words := []string{kinds[got.Kind], got.Apex, got.Port, got.Protocol, got.Host, got.Cluster, got.TopologyZone, "", got.Service, got.Namespace}
		if got.Prefers {
			words[7] = "prefers"
		}
		if text := strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " "); text != tc.want ||
			got.Service != "" && got.Key != got.Service+"."+got.Namespace {
			t.Errorf("Parse(%q) = %+v, want %s", tc.below, got, tc.want)
		}
	}
}

func parse(below string) (r record.Request) {
	r.Parse(below)
	return r
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "svc", "web.demo.svc", "a.b.pin._zone.web.demo.svc", "db-0.east.eu.web.demo.svc", "_http._tcp.web.demo.svc", `a\.b.demo.svc`, "..svc",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, below string) {
		r := parse(below)
		name := strings.Join([]string{r.Prefix, r.Service, r.Namespace, "svc"}, ".")
		if r.Kind >= record.KindNamespace && strings.TrimLeft(name, ".") != strings.ToLower(below) ||
			r.Kind >= record.KindService && r.Key != r.Service+"."+r.Namespace {
			t.Fatalf("%q was parsed into %+v", below, r)
		}
		if r.Kind == record.KindTopologyZone {
			if !strings.HasPrefix(r.Prefix, r.TopologyZone) || strings.HasSuffix(r.Prefix, "prefer._zone") != r.Prefers {
				t.Fatalf("%q was parsed into %+v", below, r)
			}
			return
		}
		prefix := map[record.Kind]string{
			record.KindProtocol: "_" + r.Protocol, record.KindPort: "_" + r.Port + "._" + r.Protocol,
			record.KindCluster: r.Cluster, record.KindHost: r.Host + "." + r.Cluster,
		}[r.Kind]
		if prefix != r.Prefix {
			t.Fatalf("%q was parsed into %+v", below, r)
		}
	})
}
