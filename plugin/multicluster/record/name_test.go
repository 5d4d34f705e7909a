// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

func TestParse(t *testing.T) {
	service := record.Request{Kind: record.KindService, Namespace: "demo", Service: "web", Key: "web.demo"}
	with := func(change func(*record.Request)) record.Request {
		request := service
		change(&request)
		return request
	}
	cluster := func(id string) record.Request {
		return with(func(r *record.Request) { r.Kind, r.Cluster = record.KindCluster, id })
	}
	host := func(host, id string) record.Request {
		return with(func(r *record.Request) {
			r.Kind, r.Host, r.Cluster = record.KindHost, host, id
		})
	}
	port := func(port, protocol string) record.Request {
		return with(func(r *record.Request) { r.Kind, r.Port, r.Protocol = record.KindPort, port, protocol })
	}
	protocol := func(protocol string) record.Request {
		return with(func(r *record.Request) { r.Kind, r.Protocol = record.KindProtocol, protocol })
	}
	zone := func(zone string, prefers bool) record.Request {
		return with(func(r *record.Request) { r.Kind, r.Zone, r.Prefers = record.KindZone, zone, prefers })
	}
	tests := []struct {
		below string
		want  record.Request
	}{
		{"", record.Request{Kind: record.KindApex}},
		{"dns-version", record.Request{Kind: record.KindVersion}},
		{"DNS-Version", record.Request{Kind: record.KindVersion}},
		{"a.dns-version", record.Request{}},
		{"dns", record.Request{Kind: record.KindAbove}},
		{"ns.dns", record.Request{Kind: record.KindNameServer}},
		{"NS.dns", record.Request{Kind: record.KindNameServer}},
		{"a.ns.dns", record.Request{}},
		{"svc", record.Request{Kind: record.KindAbove}},
		{"SVC", record.Request{Kind: record.KindAbove}},
		{"demo.svc", record.Request{Kind: record.KindNamespace, Namespace: "demo"}},
		{"web.demo.svc", service},
		{"Web.DEMO.sVc", record.Request{Kind: record.KindService, Namespace: "DEMO", Service: "Web", Key: "Web.DEMO"}},
		{"east.web.demo.svc", cluster("east")},
		{"db-0.east.web.demo.svc", host("db-0", "east")},
		{"db-0.east.eu.web.demo.svc", host("db-0", "east.eu")},
		{"10-1-2-3.east.web.demo.svc", host("10-1-2-3", "east")},
		{"a.db-0.east.eu.web.demo.svc", record.Request{}},
		{"_tcp.web.demo.svc", protocol("tcp")},
		{"_http._tcp.web.demo.svc", port("http", "tcp")},
		{"_HTTP._Tcp.web.demo.svc", port("HTTP", "Tcp")},
		{"http._tcp.web.demo.svc", record.Request{}},
		{"_http.tcp.web.demo.svc", record.Request{}},
		{"a._http._tcp.web.demo.svc", record.Request{}},
		{"_a._http._tcp.web.demo.svc", record.Request{}},
		{"_.web.demo.svc", record.Request{}},
		{"_._tcp.web.demo.svc", record.Request{}},
		{"_http._.web.demo.svc", record.Request{}},
		{"_zone.web.demo.svc", zone("", false)},
		{"Pin._Zone.web.demo.svc", zone("", false)},
		{"prefer._zone.web.demo.svc", zone("", true)},
		{"eu-1a.pin._zone.web.demo.svc", zone("eu-1a", false)},
		{"corp.example.com.PREFER._zone.web.demo.svc", zone("corp.example.com", true)},
		{"eu-1a._zone.web.demo.svc", record.Request{}},
		{"eu-1a.near._zone.web.demo.svc", record.Request{}},
		{"._zone.web.demo.svc", record.Request{}},
		{".pin._zone.web.demo.svc", record.Request{}},
		{"a..b.pin._zone.web.demo.svc", record.Request{}},
		{"a..pin._zone.web.demo.svc", record.Request{}},
		{"a.pin.._zone.web.demo.svc", record.Request{}},
		{"eu-1a.pin._zone.svc", record.Request{Kind: record.KindCluster, Namespace: "_zone", Service: "pin", Key: "pin._zone", Cluster: "eu-1a"}},
		{"10-1-2-3.demo.pod", record.Request{}},
		{"demo.pod", record.Request{}},
		{"pod", record.Request{}},
		{"web.demo", record.Request{}},
		{"*.demo.svc", record.Request{Kind: record.KindService, Namespace: "demo", Service: "*", Key: "*.demo"}},
		{".svc", record.Request{}},
		{"..svc", record.Request{}},
		{".demo.svc", record.Request{}},
		{".web.demo.svc", record.Request{}},
		{"a..web.demo.svc", record.Request{}},
		{"web..svc", record.Request{}},
		{`a\.b.demo.svc`, record.Request{
			Kind: record.KindCluster, Namespace: "demo", Service: "b", Key: "b.demo", Cluster: `a\`,
		}},
	}
	for _, tc := range tests {
		if got := record.Parse(tc.below); got != tc.want {
			t.Errorf("Parse(%q) = %+v, want %+v", tc.below, got, tc.want)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	names := []string{
		"_http._tcp.web.demo.svc",
		"DB-0.East.eu.Web.demo.svc",
		"dns-version",
	}
	var kinds record.Kind
	allocations := testing.AllocsPerRun(100, func() {
		for _, n := range names {
			kinds += record.Parse(n).Kind
		}
	})
	if allocations != 0 {
		t.Errorf("parsing allocates %v times", allocations)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "svc", "web.demo.svc", "a.b.pin._zone.web.demo.svc", "db-0.east.eu.web.demo.svc", "_http._tcp.web.demo.svc", `a\.b.demo.svc`, "..svc",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, below string) {
		request := record.Parse(below)
		folded := record.Parse(strings.ToUpper(strings.ToLower(below)))
		if isASCII(below) && folded.Kind != request.Kind {
			t.Fatalf("%q is of kind %v, and in upper case of kind %v", below, request.Kind, folded.Kind)
		}
		got := rebuild(request)
		if request.Kind == record.KindZone && request.Zone == "" && !request.Prefers {
			got = got[max(0, len(got)-len(below)):] // it may be _zone alone
		}
		if request.Kind >= record.KindNamespace && !strings.EqualFold(got, below) {
			t.Fatalf("%q was parsed into the parts of %q", below, got)
		}
		if request.Kind >= record.KindService && request.Key != request.Service+"."+request.Namespace {
			t.Fatalf("the key of %q is %q", below, request.Key)
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// rebuild joins the parts of a request to the name that it came from.
func rebuild(request record.Request) string {
	parts := []string{}
	switch request.Kind {
	case record.KindProtocol:
		parts = append(parts, "_"+request.Protocol)
	case record.KindPort:
		parts = append(parts, "_"+request.Port, "_"+request.Protocol)
	case record.KindCluster:
		parts = append(parts, request.Cluster)
	case record.KindHost:
		parts = append(parts, request.Host, request.Cluster)
	case record.KindZone:
		directive := "pin"
		if request.Prefers {
			directive = "prefer"
		}
		parts = append(parts, directive, "_zone")
		if request.Zone != "" {
			parts = append([]string{request.Zone}, parts...)
		}
	default:
	}
	if request.Kind >= record.KindService {
		parts = append(parts, request.Key)
	} else {
		parts = append(parts, request.Namespace)
	}
	return strings.Join(append(parts, "svc"), ".")
}
