// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/answer"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

func TestLongNamesAreLeftOutAndCounted(t *testing.T) {
	long := strings.Repeat("x", 63)
	wide := &record.Config{Zones: []string{strings.Repeat("zone.", 12) + zone}, TTL: 5} // a zone of 76 octets
	raw := new(mcsv1beta1.ServiceImport)
	unmarshal(t, "metadata: {name: "+long+", namespace: "+long+
		"}\nspec: {type: Headless, ports: [{name: sql, port: 1}]}", raw)
	slice := new(discoveryv1.EndpointSlice)
	unmarshal(t, from("east", "IPv4", "[{name: sql, port: 1}]", "{addresses: [10.1.0.1]}",
		"{addresses: [10.1.0.2], hostname: "+long+"}"), slice)
	service := record.Build(wide, object.FromServiceImport(raw),
		[]*object.Endpoints{object.FromEndpointSlice(slice, false)})
	x := index.New(wide)
	x.Update(1, index.Change{Key: service.Key(), Service: service})
	var names []string
	for _, rr := range walk(x.Snapshot()) {
		names = append(names, dns.TypeToString[rr.Header().Rrtype])
		if len(rr.Header().Name) > 254 {
			t.Errorf("a name of %d octets", len(rr.Header().Name))
		}
	}
	if want := []string{"A", "A", "SRV", "SRV", "A"}; !slices.Equal(names, want) {
		t.Errorf("the zone has %v, want %v", names, want)
	}
	if got := skips(service.Skips); got != "name_too_long=1" {
		t.Errorf("left out: %s", got)
	}
	longer := &record.Config{Zones: []string{strings.Repeat("zone.", 20) + strings.Repeat("zone.", 4) + zone}, TTL: 5}
	service = record.Build(longer, object.FromServiceImport(raw), nil)
	if got := skips(service.Skips); got != "name_too_long=1" {
		t.Errorf("of a service whose own name is too long is left out: %s", got)
	}
}

// TestANameTooLongForOneZoneIsInTheOthers holds each of several zones against an index of that zone alone.
func TestANameTooLongForOneZoneIsInTheOthers(t *testing.T) {
	long := strings.Repeat("x", 63)
	zones := []string{zone, strings.Repeat("zone.", 12) + zone, strings.Repeat("zone.", 24) + zone}
	slice := new(discoveryv1.EndpointSlice)
	unmarshal(t, from("east", "IPv4", "[{name: "+long[1:]+", port: 1}]", "{addresses: [10.1.0.1]}",
		"{addresses: [10.1.0.2], hostname: "+long+"}"), slice)
	endpoints := []*object.Endpoints{object.FromEndpointSlice(slice, false)}
	for _, spec := range []string{
		"{type: Headless, ports: []}", "{type: ClusterSetIP, ips: [10.42.0.1], ports: [{name: " + long[1:] +
			", port: 1}]}",
	} {
		raw := new(mcsv1beta1.ServiceImport)
		unmarshal(t, "metadata: {name: "+long+", namespace: "+long+"}\nspec: "+spec, raw)
		imported := object.FromServiceImport(raw)
		publish := func(config *record.Config) *index.Snapshot {
			x := index.New(config)
			service := record.Build(config, imported, endpoints)
			if !x.Update(1, index.Change{Key: service.Key(), Service: service}) ||
				service.Skips[object.NameTooLong] == 0 && len(config.Zones) > 1 {
				t.Errorf("%s: not published, or nothing was left out", spec)
			}
			if x.Update(2, index.Change{Key: service.Key(), Service: record.Build(config, imported, endpoints)}) {
				t.Errorf("%s: the same service changed an answer", spec)
			}
			return x.Snapshot()
		}
		all := publish(&record.Config{Zones: zones, TTL: 5})
		for number, zone := range zones {
			alone := publish(&record.Config{Zones: []string{zone}, TTL: 5})
			var got, want []dns.RR
			all.Walk(number, func(some []dns.RR) bool { got = append(got, some...); return true })
			alone.Walk(0, func(some []dns.RR) bool { want = append(want, some...); return true })
			if !slices.Equal(text(got), text(want)) {
				t.Errorf("%s: zone %d of several has %d records, and alone %d", spec, number, len(got), len(want))
			}
			if number == 0 && len(want) == 0 || number == 2 && len(want) > 0 {
				t.Errorf("%s: zone %d has %d records", spec, number, len(want))
			}
			for _, rr := range want {
				below, _ := name.Cut(rr.Header().Name, zone)
				q := answer.Question{
					Name: rr.Header().Name, Request: name.Parse(below), Zone: number,
					Type: rr.Header().Rrtype,
				}
				if reply := lookup(all, q, large); !slices.Contains(text(reply.Answer), rr.String()) {
					t.Errorf("%s: %s is not answered in zone %d", spec, rr, number)
				}
			}
		}
	}
}
