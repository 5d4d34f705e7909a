// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

const zone = recordtest.Zone

var config = &record.Config{Zones: []string{zone}, Cluster: "east", TTL: 5}

// ask queries a name for a client without limits. It ignores the order of records.
func ask(snapshot *record.Index, qname string, qtype uint16) record.Answer {
	return recordtest.Ask(snapshot, record.Question{Name: qname, Type: qtype, Client: record.Client{Size: 1 << 30, Point: 1}})
}

// text returns the text of records, sorted.
func text(records []dns.RR) []string {
	lines := make([]string, len(records))
	for i, rr := range records {
		lines[i] = rr.String()
	}
	slices.Sort(lines)
	return lines
}

// walk returns all records of the zone.
func walk(snapshot *record.Index) (records []dns.RR) {
	_, all := snapshot.Snapshot(0)
	for service := range all {
		records = append(records, service...)
	}
	return records
}

// checkZone compares the answers to queries with the records of a transfer.
func checkZone(t *testing.T, snapshot *record.Index) {
	t.Helper()
	records := walk(snapshot)
	sets := map[dns.Question][]dns.RR{}
	exists := map[string]bool{}
	for _, rr := range records {
		header := rr.Header()
		question := dns.Question{Name: header.Name, Qtype: header.Rrtype}
		sets[question] = append(sets[question], rr)
		for qname := header.Name; qname != zone; _, qname, _ = strings.Cut(qname, ".") {
			exists[qname] = true
		}
		checkName(t, header.Name)
		if srv, ok := rr.(*dns.SRV); ok {
			checkName(t, srv.Target)
			if len(ask(snapshot, srv.Target, dns.TypeAAAA).Answer)+len(ask(snapshot, srv.Target, dns.TypeA).Answer) == 0 {
				t.Errorf("target %s has no address", srv.Target)
			}
		}
	}
	for question, set := range sets {
		reply := ask(snapshot, question.Name, question.Qtype)
		got, want := text(reply.Answer), text(set)
		if reply.Result != record.Found || !slices.Equal(got, want) {
			t.Errorf("%s is answered with\n%q\nand transferred as\n%q", question.String(), got, want)
		}
		if compact := slices.Compact(slices.Clone(want)); len(compact) != len(want) {
			t.Errorf("%s has records twice: %q", question.String(), want)
		}
		checkExtra(t, sets, reply)
	}
	for qname := range exists {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeTXT} {
			reply := ask(snapshot, qname, qtype)
			if _, ok := sets[dns.Question{Name: qname, Qtype: qtype}]; !ok && reply.Result != record.Empty &&
				qname != "svc."+zone {
				t.Errorf("%s %s is %v, want NODATA: it exists, and has no such record", qname, dns.TypeToString[qtype],
					reply.Result)
			}
		}
	}
}

// checkExtra compares the additional records with the record sets of the targets.
func checkExtra(t *testing.T, sets map[dns.Question][]dns.RR, reply record.Answer) {
	t.Helper()
	var want []string
	seen := map[string]bool{}
	for _, rr := range reply.Answer {
		srv, ok := rr.(*dns.SRV)
		if !ok || seen[srv.Target] {
			continue
		}
		seen[srv.Target] = true
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			want = append(want, text(sets[dns.Question{Name: srv.Target, Qtype: qtype}])...)
		}
	}
	slices.Sort(want)
	if got := text(reply.Extra); !slices.Equal(got, want) {
		t.Errorf("additional records are\n%q\nwant\n%q", got, want)
	}
}

// checkName checks a name against the rules of DNS and Kubernetes.
func checkName(t *testing.T, qname string) {
	t.Helper()
	if len(qname) > 254 {
		t.Errorf("%s has %d octets", qname, len(qname))
	}
	if qname != strings.ToLower(qname) {
		t.Errorf("%s is not in lower case", qname)
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(qname, "."), ".") {
		plain := strings.TrimPrefix(label, "_")
		if plain == "" || len(label) > 63 || plain[0] == '-' || plain[len(plain)-1] == '-' {
			t.Errorf("%q in %s is no label", label, qname)
		}
	}
}

// snapshotOf returns an index with the service.
func snapshotOf(service *record.Service) *record.Index {
	x := record.NewIndex(config)
	x.Update(1, services{service.Import.Key: service})
	return x
}

// services are new states by key; nil removes a service.
type services = map[string]*record.Service

// update publishes changes and reports whether the serial changed.
func update(x *record.Index, now uint32, changes services) (moved bool) {
	before := x.State()
	x.Update(now, changes)
	return before == nil || x.State().Serial != before.Serial
}
