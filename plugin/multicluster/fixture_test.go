// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
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

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

const (
	testZone = "clusterset.local."
	testTime = 1_800_000_000 // seconds since 1970, and the serial of indexes in tests
	testSOA  = " 5 IN SOA ns.dns.clusterset.local. hostmaster.clusterset.local. 1800000000 7200 1800 86400 5"
)

// service is a service in namespace demo: its name, the spec of its import, and its slices.
type service struct {
	name, spec string
	slices     []*discoveryv1.EndpointSlice
}

// build builds services by key.
func build(config *record.Config, all ...service) map[string]*record.Service {
	services := map[string]*record.Service{}
	for _, s := range all {
		services[s.name+".demo"] = recordtest.Build(config, s.name, "spec: "+s.spec, s.slices...)
	}
	return services
}

var addresses = []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53")}

// newTestPlugin returns a plugin that serves the services without an API server.
func newTestPlugin(services ...service) *Multicluster {
	m := newMulticluster()
	m.config.Zones = []string{testZone}
	m.now = func() time.Time { return time.Unix(testTime, 0) }
	m.setAddresses(addresses)
	m.serve(services)
	return m
}

// serve publishes the services in a new index.
func (m *Multicluster) serve(services []service) {
	x := record.NewIndex(&m.config)
	x.Update(testTime, build(&m.config, services...))
	m.index.Store(x)
}

// ask sends a query to the plugin and returns the reply, after packing and unpacking it.
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
	for _, section := range [][]dns.RR{recorder.Msg.Answer, recorder.Msg.Ns, recorder.Msg.Extra} {
		if len(section) < cap(section) {
			t.Errorf("%s: a plugin that appends, such as dnssec, would write into shared memory", r.Question[0].String())
		}
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

// records parses zone text, one record per line.
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

// readCases parses queries, one per line: the type, the name, and after "=" the data of the answers. Additional records
// follow after "+". No answer means NODATA, or NXDOMAIN after "!". "@" is the zone, and "\\" at the end of a line
// continues it.
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
		sort.Sort(test.RRSet(tc.Answer)) // as test.SortAndCheck requires
		sort.Sort(test.RRSet(tc.Extra))
		all = append(all, tc)
	}
	return all
}

// file writes a temporary file and returns its path.
func file(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sorted returns the text of the records, sorted.
func sorted(all []dns.RR) []string {
	set := test.RRSet(slices.Clone(all))
	sort.Sort(set)
	lines := make([]string, len(set))
	for i, rr := range set {
		lines[i] = rr.String()
	}
	return lines
}

// zoneOf returns the records of the services in a transfer of the zone, sorted.
func zoneOf(m *Multicluster) []string {
	_, all := m.index.Load().Snapshot(0)
	return sorted(slices.Concat(slices.Collect(all)...))
}

var udpClient = &test.ResponseWriter{}

// must ends the test if there is an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
