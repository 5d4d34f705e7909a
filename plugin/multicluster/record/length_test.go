// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

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
	x := record.NewIndex(wide)
	update(x, 1, Change{Key: service.Import.Key, Service: service})
	var names []string
	for _, rr := range walk(x) {
		names = append(names, dns.TypeToString[rr.Header().Rrtype])
		if len(rr.Header().Name) > 254 {
			t.Errorf("a name of %d octets", len(rr.Header().Name))
		}
	}
	slices.Sort(names)
	if want := []string{"A", "A", "A", "SRV", "SRV"}; !slices.Equal(names, want) {
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

func TestANameTooLongForOneZoneIsInNone(t *testing.T) {
	long := strings.Repeat("x", 63)
	raw, slice := new(mcsv1beta1.ServiceImport), new(discoveryv1.EndpointSlice)
	unmarshal(t, "metadata: {name: "+long+", namespace: "+long+"}\nspec: {type: Headless, ports: []}", raw)
	unmarshal(t, from("east", "IPv4", "[]", "{addresses: [10.1.0.1]}", "{addresses: [10.1.0.2], hostname: "+long+"}"), slice)
	both := &record.Config{Zones: []string{zone, strings.Repeat("zone.", 12) + zone}, TTL: 5}
	service := record.Build(both, object.FromServiceImport(raw), []*object.Endpoints{object.FromEndpointSlice(slice, false)})
	if got := skips(service.Skips); got != "name_too_long=1" {
		t.Errorf("left out: %s", got)
	}
	for number := range both.Zones {
		if got := len(service.Records(both, number)); got != 3 {
			t.Errorf("zone %d has %d records, want two addresses of the service and one of a host", number, got)
		}
	}
}
