// SPDX-License-Identifier: Apache-2.0

package name_test

import (
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
)

func TestCut(t *testing.T) {
	tests := []struct {
		name, zone, below string
		in                bool
	}{
		{"clusterset.local.", "clusterset.local.", "", true},
		{"CLUSTERSET.local.", "clusterset.LOCAL.", "", true},
		{"web.demo.svc.clusterset.local.", "clusterset.local.", "web.demo.svc", true},
		{"Web.Demo.Svc.ClusterSet.Local.", "clusterset.local.", "Web.Demo.Svc", true},
		{"notclusterset.local.", "clusterset.local.", "", false},
		{"local.", "clusterset.local.", "", false},
		{".", "clusterset.local.", "", false},
		{`a\.clusterset.local.`, "clusterset.local.", "", false},
		{`a\\.clusterset.local.`, "clusterset.local.", `a\\`, true},
		{`a\\\.clusterset.local.`, "clusterset.local.", "", false},
		{".", ".", "", true},
		{"web.demo.svc.", ".", "web.demo.svc", true},
		{"", "clusterset.local.", "", false},
	}
	for _, tc := range tests {
		below, in := name.Cut(tc.name, tc.zone)
		if below != tc.below || in != tc.in {
			t.Errorf("Cut(%q, %q) = %q, %v, want %q, %v", tc.name, tc.zone, below, in, tc.below, tc.in)
		}
	}
}

func TestParse(t *testing.T) {
	service := name.Request{Kind: name.Service, Namespace: "demo", Service: "web", Key: "web.demo"}
	with := func(change func(*name.Request)) name.Request {
		request := service
		change(&request)
		return request
	}
	cluster := func(id string) name.Request {
		return with(func(r *name.Request) { r.Kind, r.Cluster, r.Prefix = name.Cluster, id, id })
	}
	host := func(host, id string) name.Request {
		return with(func(r *name.Request) {
			r.Kind, r.Host, r.Cluster, r.Prefix = name.Host, host, id, host+"."+id
		})
	}
	port := func(port, protocol string) name.Request {
		return with(func(r *name.Request) { r.Kind, r.Port, r.Protocol = name.Port, port, protocol })
	}
	protocol := func(protocol string) name.Request {
		return with(func(r *name.Request) { r.Kind, r.Protocol = name.Protocol, protocol })
	}
	tests := []struct {
		below string
		want  name.Request
	}{
		{"", name.Request{Kind: name.Apex}},
		{"dns-version", name.Request{Kind: name.Version}},
		{"DNS-Version", name.Request{Kind: name.Version}},
		{"a.dns-version", name.Request{}},
		{"dns", name.Request{Kind: name.Above}},
		{"ns.dns", name.Request{Kind: name.NameServer}},
		{"NS.dns", name.Request{Kind: name.NameServer}},
		{"a.ns.dns", name.Request{}},
		{"svc", name.Request{Kind: name.Above}},
		{"SVC", name.Request{Kind: name.Above}},
		{"demo.svc", name.Request{Kind: name.Namespace, Namespace: "demo"}},
		{"web.demo.svc", service},
		{"Web.DEMO.sVc", name.Request{Kind: name.Service, Namespace: "DEMO", Service: "Web", Key: "Web.DEMO"}},
		{"east.web.demo.svc", cluster("east")},
		{"db-0.east.web.demo.svc", host("db-0", "east")},
		{"db-0.east.eu.web.demo.svc", host("db-0", "east.eu")},
		{"10-1-2-3.east.web.demo.svc", host("10-1-2-3", "east")},
		{"a.db-0.east.eu.web.demo.svc", name.Request{}},
		{"_tcp.web.demo.svc", protocol("tcp")},
		{"_http._tcp.web.demo.svc", port("http", "tcp")},
		{"_HTTP._Tcp.web.demo.svc", port("HTTP", "Tcp")},
		{"http._tcp.web.demo.svc", name.Request{}},
		{"_http.tcp.web.demo.svc", name.Request{}},
		{"a._http._tcp.web.demo.svc", name.Request{}},
		{"_a._http._tcp.web.demo.svc", name.Request{}},
		{"_.web.demo.svc", name.Request{}},
		{"_._tcp.web.demo.svc", name.Request{}},
		{"_http._.web.demo.svc", name.Request{}},
		{"10-1-2-3.demo.pod", name.Request{}},
		{"demo.pod", name.Request{}},
		{"pod", name.Request{}},
		{"web.demo", name.Request{}},
		{"*.demo.svc", name.Request{Kind: name.Service, Namespace: "demo", Service: "*", Key: "*.demo"}},
		{".svc", name.Request{}},
		{"..svc", name.Request{}},
		{".demo.svc", name.Request{}},
		{".web.demo.svc", name.Request{}},
		{"a..web.demo.svc", name.Request{}},
		{"web..svc", name.Request{}},
		{`a\.b.demo.svc`, name.Request{
			Kind: name.Cluster, Namespace: "demo", Service: "b", Key: "b.demo", Cluster: `a\`, Prefix: `a\`,
		}},
	}
	for _, tc := range tests {
		if got := name.Parse(tc.below); got != tc.want {
			t.Errorf("Parse(%q) = %+v, want %+v", tc.below, got, tc.want)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	names := []string{
		"_http._tcp.web.demo.svc.clusterset.local.",
		"DB-0.East.eu.Web.demo.svc.ClusterSet.local.",
		"dns-version.clusterset.local.",
	}
	var kinds name.Kind
	allocations := testing.AllocsPerRun(100, func() {
		for _, n := range names {
			below, _ := name.Cut(n, "clusterset.local.")
			kinds += name.Parse(below).Kind
		}
	})
	if allocations != 0 {
		t.Errorf("parsing allocates %v times", allocations)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "svc", "web.demo.svc", "db-0.east.eu.web.demo.svc", "_http._tcp.web.demo.svc", `a\.b.demo.svc`, "..svc",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, below string) {
		request := name.Parse(below)
		folded := name.Parse(strings.ToUpper(strings.ToLower(below)))
		if isASCII(below) && folded.Kind != request.Kind {
			t.Fatalf("%q is of kind %v, and in upper case of kind %v", below, request.Kind, folded.Kind)
		}
		if got := rebuild(request); request.Kind >= name.Namespace && !strings.EqualFold(got, below) {
			t.Fatalf("%q was parsed into the parts of %q", below, got)
		}
		if request.Kind >= name.Service && request.Key != request.Service+"."+request.Namespace {
			t.Fatalf("the key of %q is %q", below, request.Key)
		}
		full := below + ".clusterset.local."
		if cut, ok := name.Cut(full, "clusterset.local."); ok && cut != below {
			t.Fatalf("Cut(%q) = %q", full, cut)
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
func rebuild(request name.Request) string {
	parts := []string{}
	switch request.Kind {
	case name.Protocol:
		parts = append(parts, "_"+request.Protocol)
	case name.Port:
		parts = append(parts, "_"+request.Port, "_"+request.Protocol)
	case name.Cluster:
		parts = append(parts, request.Cluster)
	case name.Host:
		parts = append(parts, request.Host, request.Cluster)
	default:
	}
	if request.Kind >= name.Service {
		parts = append(parts, request.Key)
	} else {
		parts = append(parts, request.Namespace)
	}
	return strings.Join(append(parts, "svc"), ".")
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		below, _ := name.Cut("db-0.east.web.demo.svc.clusterset.local.", "clusterset.local.")
		name.Parse(below)
	}
}
