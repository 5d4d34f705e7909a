// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

const (
	testZone = "clusterset.local."
	testTime = 1_800_000_000 // seconds since 1970, and the serial of what is made in tests
	testSOA  = " 5 IN SOA ns.dns.clusterset.local. hostmaster.clusterset.local. 1800000000 7200 1800 86400 5"
)

func unmarshal(t testing.TB, document string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
}

// servicesOf builds the services of YAML documents, by key.
func servicesOf(t testing.TB, config *record.Config, text string) map[string]*record.Service {
	t.Helper()
	var imports []*object.Import
	endpoints := map[string][]*object.Endpoints{}
	for document := range strings.SplitSeq(text, "---\n") {
		switch {
		case strings.Contains(document, "kind: ServiceImport\n"):
			raw := new(mcsv1beta1.ServiceImport)
			unmarshal(t, document, raw)
			imports = append(imports, object.FromServiceImport(raw))
		case document != "":
			raw := new(discoveryv1.EndpointSlice)
			unmarshal(t, document, raw)
			key := raw.Labels[mcsv1beta1.LabelServiceName] + "." + raw.Namespace
			endpoints[key] = append(endpoints[key], object.FromEndpointSlice(raw, true))
		}
	}
	services := map[string]*record.Service{}
	for _, imported := range imports {
		services[imported.Key] = record.Build(config, imported, endpoints[imported.Key])
	}
	return services
}

var addresses = []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53")}

// newTestPlugin serves the objects, without an API server.
func newTestPlugin(t testing.TB, text string) *Multicluster {
	t.Helper()
	m := newMulticluster()
	m.Zones = []string{testZone}
	m.now = func() time.Time { return time.Unix(testTime, 0) }
	m.setAddresses(addresses)
	serve(t, m, text)
	return m
}

// serve publishes the objects in a new index.
func serve(t testing.TB, m *Multicluster, text string) {
	t.Helper()
	config := m.config()
	x := record.NewIndex(config)
	x.Update(testTime, servicesOf(t, config, text))
	m.index.Store(x)
}

// ask puts a query to the plugin and returns its reply, which must survive packing.
func ask(t testing.TB, m *Multicluster, r *dns.Msg, w dns.ResponseWriter) *dns.Msg {
	t.Helper()
	recorder := dnstest.NewRecorder(w)
	rcode, err := m.ServeDNS(t.Context(), recorder, r)
	if err != nil {
		t.Fatalf("%s: %v", r.Question[0].String(), err)
	}
	if recorder.Msg == nil {
		return new(dns.Msg).SetRcode(r, rcode) // as the server does
	}
	packed, err := recorder.Msg.Pack()
	if err != nil {
		t.Fatalf("%s: the reply cannot be packed: %v", r.Question[0].String(), err)
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(packed); err != nil {
		t.Fatalf("%s: the reply cannot be unpacked: %v", r.Question[0].String(), err)
	}
	if reply.Rcode != rcode {
		t.Errorf("%s: returned rcode %d and wrote %d", r.Question[0].String(), rcode, reply.Rcode)
	}
	return reply
}

// records reads zone text, a record in each line.
func records(text string) (all []dns.RR) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		rr, err := dns.NewRR(line)
		if err != nil {
			panic(err)
		}
		all = append(all, rr)
	}
	return all
}

// readCases reads queries, one in each line: its type, its name, and after "=" the data of the answers. Additional
// records follow after "+". Without an answer there is NODATA, and after "!" NXDOMAIN. "@" is the zone, and "\\" at the
// end of a line continues it.
func readCases(text string) (all []test.Case) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\\\n", ""), "@", testZone)
	for line := range strings.Lines(text) {
		query, answers, found := strings.Cut(strings.Join(strings.Fields(line), " "), " = ")
		if query == "" {
			continue
		}
		fields := strings.Fields(query)
		tc := test.Case{Qname: fields[1], Qtype: dns.StringToType[fields[0]]}
		if len(fields) > 2 {
			tc.Rcode = dns.RcodeNameError
		}
		answers, additional, more := strings.Cut(answers, " + ")
		for data := range strings.SplitSeq(answers, ",") {
			if found {
				tc.Answer = append(tc.Answer, records(fields[1]+" 5 IN "+fields[0]+" "+data)...)
			}
		}
		for record := range strings.SplitSeq(additional, ",") {
			if more {
				tc.Extra = append(tc.Extra, records(strings.Replace(strings.TrimSpace(record), " ", " 5 IN ", 1))...)
			}
		}
		for _, zone := range []string{testZone, reverse4, reverse6} {
			if !found && dns.IsSubDomain(zone, tc.Qname) {
				tc.Ns = records(zone + testSOA)
			}
		}
		sort.Sort(test.RRSet(tc.Answer)) // as test.SortAndCheck wants them
		sort.Sort(test.RRSet(tc.Extra))
		all = append(all, tc)
	}
	return all
}

// file writes a file of a test and returns its path.
func file(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sorted is the text of the records, sorted.
func sorted(all []dns.RR) []string {
	set := test.RRSet(slices.Clone(all))
	sort.Sort(set)
	lines := make([]string, len(set))
	for i, rr := range set {
		lines[i] = rr.String()
	}
	return lines
}

// service is the YAML of an import.
func serviceImport(name, spec string) string {
	return "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\n" +
		"metadata: {name: " + name + ", namespace: demo}\nspec: " + spec + "\n---\n"
}

// endpointSlice is the YAML of a slice.
func endpointSlice(service, cluster, family, ports string, endpoints ...string) string {
	var b bytes.Buffer
	b.WriteString("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: slice\n  namespace: demo\n")
	b.WriteString("  labels:\n    multicluster.kubernetes.io/service-name: " + service + "\n")
	if cluster != "" {
		b.WriteString("    multicluster.kubernetes.io/source-cluster: " + cluster + "\n")
	}
	b.WriteString("addressType: " + family + "\nports: " + ports + "\nendpoints:\n")
	for _, endpoint := range endpoints {
		b.WriteString("- " + endpoint + "\n")
	}
	b.WriteString("---\n")
	return b.String()
}

// zoneOf is what a transfer of the zone has of services, sorted.
func zoneOf(m *Multicluster) []string {
	_, all := m.index.Load().Snapshot(0)
	return sorted(slices.Concat(slices.Collect(all)...))
}

var udpClient, tcpClient = &test.ResponseWriter{}, &test.ResponseWriter{TCP: true}

// manyEndpoints is the YAML of a headless service with so many endpoints, half of them in each of two clusters; those of
// east have hostnames.
func manyEndpoints(name string, count int) string {
	const ports = "[{name: sql, port: 5432}]"
	var east, west []string
	for i := range count / 2 {
		east = append(east, fmt.Sprintf("{addresses: [10.1.%d.%d], hostname: db-%d}", i>>8, i&0xff, i))
		west = append(west, fmt.Sprintf("{addresses: [10.2.%d.%d]}", i>>8, i&0xff))
	}
	return serviceImport(name, "{type: Headless, ports: "+ports+"}") +
		endpointSlice(name, "east", "IPv4", ports, east...) + endpointSlice(name, "west", "IPv4", ports, west...)
}
