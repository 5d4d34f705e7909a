// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"bytes"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

const (
	testZone = "clusterset.local."
	testTime = 1_800_000_000 // seconds since 1970, and the serial of what is made in tests
	testSOA  = testZone + " 5 IN SOA ns.dns.clusterset.local. hostmaster.clusterset.local. 1800000000 7200 1800 86400 5"
)

// objects are what a test's plugin serves.
type fixture struct {
	imports []*mcsv1beta1.ServiceImport
	slices  []*discoveryv1.EndpointSlice
}

// readObjects reads YAML documents.
func readObjects(t testing.TB, text string) (all fixture) {
	t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		switch kind.Kind {
		case "ServiceImport":
			raw := new(mcsv1beta1.ServiceImport)
			all.imports = append(all.imports, raw)
			unmarshal(t, document, raw)
		case "EndpointSlice":
			raw := new(discoveryv1.EndpointSlice)
			all.slices = append(all.slices, raw)
			unmarshal(t, document, raw)
		default:
			t.Fatalf("kind %q in\n%s", kind.Kind, document)
		}
	}
	return all
}

func unmarshal(t testing.TB, document string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
}

// services builds the services of the objects, by key.
func (all fixture) services(config *record.Config) map[string]*record.Service {
	byKey := map[string][]*object.Endpoints{}
	for _, slice := range all.slices {
		key := slice.Labels[mcsv1beta1.LabelServiceName] + "." + slice.Namespace
		byKey[key] = append(byKey[key], object.FromEndpointSlice(slice, false))
	}
	services := map[string]*record.Service{}
	for _, raw := range all.imports {
		imported := object.FromServiceImport(raw)
		services[imported.Key] = record.Build(config, imported, byKey[imported.Key])
	}
	return services
}

// newTestPlugin serves the objects, without an API server.
func newTestPlugin(t testing.TB, text string) *Multicluster {
	t.Helper()
	m := newMulticluster()
	m.Zones = []string{testZone}
	m.now = func() time.Time { return time.Unix(testTime, 0) }
	m.setAddresses([]netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53")})
	serve(m, readObjects(t, text))
	return m
}

// serve publishes the objects in a new index.
func serve(m *Multicluster, all fixture) {
	config := m.config()
	x := record.NewIndex(config)
	x.Update(testTime, all.services(config))
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
