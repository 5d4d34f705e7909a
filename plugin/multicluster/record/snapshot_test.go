// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

func TestTheSerialMovesWithEveryChangeOfAnAnswerAndWithNothingElse(t *testing.T) {
	ip := func(ips, ports string) string { return "spec: " + recordtest.ClusterSetIP(ips, ports) }
	const headlessSQL, one = "spec: " + sql, "east: 10.1.0.1/a"
	const waiting = "east: 10.1.0.1; west "
	steps := []struct {
		name, raw, slices string // raw: empty if the service is deleted; slices as in recordtest
		moves             bool
	}{
		{"the first list", ip("10.42.0.1", ""), "", true},
		{"nothing", ip("10.42.0.1", ""), "", false},
		{"an IP that is none", ip("10.42.0.1 None", ""), "", false},
		{"endpoints of a ClusterSetIP service", ip("10.42.0.1", ""), one, false},
		{"another IP", ip("10.42.0.2", ""), "", true},
		{"a port", ip("10.42.0.2", "a=1"), "", true},
		{"another number of a port", ip("10.42.0.2", "a=2"), "", true},
		{"another type", headlessSQL, "", true}, // without endpoints the service does not exist
		{"an endpoint that is not ready", headlessSQL, "east: !10.1.0.1", false},
		{"a ready one", headlessSQL, one, true},
		{"the same in two slices", headlessSQL, one + "; " + one, false},
		{"a port that is not declared", headlessSQL, "east[sql=5432 x=1]: 10.1.0.1/a", false},
		{"another number of a declared port in the import", "spec: " + recordtest.Headless("sql=1"), one, false},
		{"another number of a declared port in the slice", headlessSQL, "east[sql=1]: 10.1.0.1/a", true},
		{"another cluster", headlessSQL, "west[sql=1]: 10.1.0.1/a", true},
		{"a preference", "metadata: {annotations: {clusterset-dns.github.io/prefer: cluster}}\n" + headlessSQL, "west[sql=1]: 10.1.0.1/a", true},
		{"two clusters", headlessSQL, waiting + ": ~10.2.0.1", true},
		{"a priority", headlessSQL, waiting + "priority=2: ~10.2.0.1", true},
		{"a weight", headlessSQL, waiting + "priority=2 weight=7: ~10.2.0.1", true},
		{"one that terminates", headlessSQL, waiting + "priority=2 weight=7 terminating=0: ~10.2.0.1", true},
		{"no priority", headlessSQL, waiting + ": ~10.2.0.1", false}, // SRV no longer lists the endpoint, as before the priority
		{"deletion", "", "", true},
		{"deletion of what is not there", "", "", false},
	}
	const start = 1000
	x := record.NewIndex(config)
	for i, step := range steps {
		var before uint32
		if state := x.State(); state != nil {
			before = state.Serial
		}
		var service *record.Service
		if step.raw != "" {
			service = recordtest.Build(config, "db", step.raw, recordtest.Slices(step.slices)...)
		}
		moved := update(x, uint32(start+10*i), services{"db.demo": service})
		serial := x.State().Serial
		if moved != step.moves {
			t.Errorf("%s: the serial went from %d to %d", step.name, before, serial)
		}
		if moved && serial != uint32(start+10*i) {
			t.Errorf("%s: the serial is %d, want the time", step.name, serial)
		}
	}
}

func TestTheSerialNeverGoesBack(t *testing.T) {
	x := record.NewIndex(config)
	for i, step := range []struct{ now, want uint32 }{
		{100, 100},
		{100, 101},
		{50, 102},
		{1<<32 - 1, 103},
		{1 << 31, 1 << 31},
		{1<<32 - 1, 1<<32 - 1},
		{1<<32 - 1, 0},
		{5, 5},
	} {
		x.Update(step.now, services{"db.demo": build(recordtest.ClusterSetIP(fmt.Sprint("10.42.0.", i+1), ""))})
		if got := x.State().Serial; got != step.want {
			t.Errorf("step %d: the serial at %d is %d, want %d", i, step.now, got, step.want)
		}
	}
}

func TestThatANameDoesNotExistIsRememberedFiveMinutesAtMost(t *testing.T) {
	for ttl, want := range map[uint32]uint32{0: 0, 300: 300, 3600: 300} {
		x := record.NewIndex(&record.Config{Zones: []string{zone}, TTL: ttl})
		x.Update(1, nil)
		if soa := x.State().SOA(0)[0].(*dns.SOA); min(soa.Hdr.Ttl, soa.Minttl) != want {
			t.Errorf("with ttl %d the record is %v", ttl, soa)
		}
	}
}

// TestASnapshotIsOfOneMoment: an iteration returns the records of its beginning, and deleted services leave no records.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	x := record.NewIndex(config)
	web := func(ip string) *record.Service { return build(recordtest.ClusterSetIP(ip, "")) }
	x.Update(1, services{"a.one": web("10.42.0.1 None"), "b.one": web("10.42.0.2")})
	_, published := x.Snapshot(0)
	want, skips := text(walk(x)), fmt.Sprint(x.Skips())
	x.Update(2, services{"a.one": web("10.42.0.9"), "b.one": nil, "c.two": web("10.42.0.3")})
	if got := text(slices.Concat(slices.Collect(published)...)); !slices.Equal(got, want) || len(want) != 2 {
		t.Errorf("the first snapshot is %q, and was %q", got, want)
	}
	if skips != "map[invalid_ip:1]" {
		t.Errorf("the first index has %s", skips)
	}
	exists := func(namespace string, want record.Result) {
		t.Helper()
		if got := ask(x, namespace+".svc."+zone, dns.TypeA).Result; got != want {
			t.Errorf("namespace %s is %v, want %v", namespace, got, want)
		}
	}
	exists("one", record.Empty) // one of two services remains
	x.Update(3, services{"a.one": nil})
	exists("one", record.NotExist)
	exists("two", record.Empty)
	x.Update(4, services{"c.two": nil})
	if skips := x.Skips(); len(skips) > 0 || len(walk(x)) > 0 {
		t.Errorf("an empty index holds %v", skips)
	}
}
