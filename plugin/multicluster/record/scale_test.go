// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// allocations counts those of one SRV query over UDP to a service of one endpoint with so many ports.
func allocations(t *testing.T, ports int) float64 {
	t.Helper()
	var texts []string
	for i := range ports {
		texts = append(texts, fmt.Sprintf("{name: p%d, port: %d}", i, 1000+i))
	}
	text := "[" + strings.Join(texts, ", ") + "]"
	snapshot := snapshotOf(build(t, "{type: Headless, ports: "+text+"}", from("east", "IPv4", text, "10.1.0.1")))
	return testing.AllocsPerRun(10, func() {
		reply := askAs(snapshot, "db.demo.svc."+zone, dns.TypeSRV, 0, record.Client{Size: 512})
		if reply.Result != record.Found || !reply.Truncated {
			t.Errorf("%d ports are answered as %v, truncated %v", ports, reply.Result, reply.Truncated)
		}
	})
}

func TestAQueryDoesNotCollectTheNumbersOfPorts(t *testing.T) {
	few, many := allocations(t, 100), allocations(t, 10000)
	if few != many {
		t.Errorf("an SRV query makes %v allocations among 100 ports, and %v among 10,000", few, many)
	}
}

func TestAListIsPublishedWithoutACopyForEachService(t *testing.T) {
	const count = 4096
	changes := make([]Change, count)
	for i := range changes {
		raw := new(mcsv1beta1.ServiceImport)
		raw.Name, raw.Namespace, raw.Spec.Type = fmt.Sprintf("web-%d", i), "demo", mcsv1beta1.ClusterSetIP
		imported := object.FromServiceImport(raw)
		changes[i] = Change{Key: imported.Key, Service: record.Build(config, imported, nil)}
	}
	made := testing.AllocsPerRun(1, func() { update(record.NewIndex(config), 1, changes...) })
	if each := made / count; each > 8 {
		t.Errorf("%.1f allocations for each service, want a few for its place and that of its namespace", each)
	}
}

func TestChangesAtOnceLeaveEarlierSnapshotsAsTheyWere(t *testing.T) {
	const count = 3000
	x := record.NewIndex(config)
	publish := func(now uint32, octet int) (published iter.Seq[[]dns.RR], zoneText []string) {
		changes := make([]Change, 0, count)
		for i := range count {
			service := build(t, fmt.Sprintf("{type: ClusterSetIP, ips: [10.%d.%d.%d], ports: []}", octet, i/250,
				1+i%250))
			changes = append(changes, Change{Key: fmt.Sprintf("web-%d.demo-%d", i, i%7), Service: service})
		}
		update(x, now, append(changes, Change{Key: fmt.Sprintf("web-%d.demo-%d", octet, octet%7)})...)
		_, published = x.Snapshot(0)
		return published, text(walk(x))
	}
	first, want := publish(1, 42)
	if _, second := publish(2, 43); slices.Equal(want, second) || len(second) != count-1 {
		t.Errorf("the second snapshot has %d records, want %d others", len(second), count-1)
	}
	if got := text(slices.Concat(slices.Collect(first)...)); !slices.Equal(got, want) {
		t.Errorf("the first snapshot changed: it has %d records, and had %d", len(got), len(want))
	}
	if got := ask(x, "demo-0.svc."+zone, dns.TypeA).Result; got != record.Empty {
		t.Errorf("the namespace of a service is %v", got)
	}
	gone := make([]Change, count)
	for i := range count {
		gone[i].Key = fmt.Sprintf("web-%d.demo-%d", i, i%7)
	}
	update(x, 3, gone...)
	if got := ask(x, "demo-0.svc."+zone, dns.TypeA).Result; got != record.NotExist {
		t.Errorf("the namespace of no service is %v", got)
	}
	if totals := x.State().Totals; totals.ClusterSetIP+totals.Headless+len(totals.Skips) != 0 {
		t.Errorf("an empty index holds %+v", totals)
	}
}

func TestEachOfManyBlocksIsTakenFrom(t *testing.T) {
	const clusters = 40
	var all []string
	for c := range clusters {
		var endpoints []string
		for i := range 1 + c%3 {
			endpoints = append(endpoints, fmt.Sprintf("{addresses: [10.%d.0.%d], hostname: h%d}", c, i+1, i))
		}
		all = append(all, from(fmt.Sprintf("c%d", c), "IPv4", fmt.Sprintf("[{name: sql, port: %d}]", 1+c%5),
			endpoints...))
	}
	snapshot := snapshotOf(build(t, sql, all...))
	for _, qtype := range []uint16{dns.TypeA, dns.TypeSRV} {
		want := text(ask(snapshot, "db.demo.svc."+zone, qtype).Answer)
		taken := map[string]bool{}
		for point := range uint64(len(want)) {
			reply := askAs(snapshot, "db.demo.svc."+zone, qtype, 3, record.Client{Size: 65535, Point: point})
			if len(reply.Answer) != 3 || len(reply.Extra) != 3*int(qtype/dns.TypeSRV) {
				t.Fatalf("%d records, %d additional", len(reply.Answer), len(reply.Extra))
			}
			for _, line := range text(reply.Answer) {
				taken[line] = true
			}
		}
		for _, line := range want {
			if !taken[line] {
				t.Errorf("%s is never answered", strings.ReplaceAll(line, "\t", " "))
			}
			delete(taken, line)
		}
		for line := range taken {
			t.Errorf("%s is answered, and none of the records", line)
		}
	}
}
