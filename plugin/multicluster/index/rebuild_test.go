// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// sliced is a service whose slices change in steps.
type sliced struct {
	config   *record.Config
	imported *object.Import
	slices   []*object.Endpoints
	service  *record.Service
	index    *index.Index // with reverse zones; nil: none
}

// step replaces, adds or removes a slice, several at once at times.
func (s *sliced) step(random *rand.Rand, slice func() *object.Endpoints) {
	for range 1 + random.IntN(2) {
		all := slices.Clone(s.slices)
		at := 0
		if len(all) > 0 {
			at = random.IntN(len(all))
		}
		switch draw := random.IntN(10); {
		case len(all) == 0 || draw == 0:
			all = append(all, slice())
		case draw == 1:
			all[at] = all[len(all)-1]
			all = all[:len(all)-1]
		case draw == 2:
			all = slices.Delete(all, at, at+1)
		default:
			all[at] = slice()
		}
		s.slices = all
	}
}

// check holds the next state, made of the last one, against that of a plain build.
func (s *sliced) check(t *testing.T, what string) {
	t.Helper()
	s.service = s.service.Rebuild(s.config, s.imported, s.slices)
	plain := record.Build(s.config, s.imported, s.slices)
	if !s.service.AnswersAs(plain) || !plain.AnswersAs(s.service) || s.service.Len() != plain.Len() ||
		skips(s.service.Skips) != skips(plain.Skips) {
		t.Fatalf("%s: the next state is\n%q, %s\nand a plain build\n%q, %s", what, text(s.service.Records(s.config, 0)),
			skips(s.service.Skips), text(plain.Records(s.config, 0)), skips(plain.Skips))
	}
	if s.index != nil {
		s.index.Update(1, index.Change{Key: s.service.Key(), Service: s.service})
		fresh := index.New(s.config)
		fresh.Update(1, index.Change{Key: plain.Key(), Service: plain})
		if got, want := pointerRecords(s.index), pointerRecords(fresh); !slices.Equal(got, want) {
			t.Fatalf("%s: the PTR records are\n%q\nwant\n%q", what, got, want)
		}
	}
	if got, want := text(s.service.Records(s.config, 0)), text(plain.Records(s.config, 0)); !slices.Equal(got, want) {
		t.Fatalf("%s: the records are\n%q\nwant\n%q", what, got, want)
	}
}

// pointerRecords are the PTR records of an index.
func pointerRecords(x *index.Index) (lines []string) {
	for zone := range x.Config().Reverse {
		x.Snapshot().WalkReverse(len(x.Config().Zones)+zone, func(records []dns.RR) bool {
			lines = append(lines, text(records)...)
			return true
		})
	}
	return lines
}

// TestTheNextStateIsThatOfAPlainBuild changes slices of odd services in many ways.
func TestTheNextStateIsThatOfAPlainBuild(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 400 {
		octets := func() *source {
			octets := make([]byte, random.IntN(100))
			for j := range octets {
				octets[j] = byte(random.Uint32())
			}
			return &source{octets}
		}
		s := sliced{config: config, imported: object.FromServiceImport(octets().serviceImport())}
		if i%4 == 0 {
			s.config = twoZones
			s.index = index.New(s.config)
		}
		for range 40 {
			s.step(random, func() *object.Endpoints { return object.FromEndpointSlice(octets().slice(), i%2 == 0) })
			s.check(t, strconv.Itoa(i))
		}
	}
}

var twoZones = &record.Config{
	Zones:   []string{zone, "a.zone.with.quite.a.long.name."},
	Reverse: []string{"10.in-addr.arpa.", "d.f.ip6.arpa."}, Cluster: "west", TTL: 5,
}

// TestTheNextStateOfALargeService changes slices of services whose blocks have many leaves.
func TestTheNextStateOfALargeService(t *testing.T) {
	for _, tc := range []struct {
		name  string
		slice func(random *rand.Rand) *discoveryv1.EndpointSlice
	}{
		{"addresses", func(random *rand.Rand) *discoveryv1.EndpointSlice {
			return randomSlice(random, discoveryv1.AddressTypeIPv4, 1<<20, 0)
		}},
		{"hostnames of both families", func(random *rand.Rand) *discoveryv1.EndpointSlice {
			family := []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}[random.IntN(2)]
			return randomSlice(random, family, 1<<20, 2000)
		}},
		{"shared addresses", func(random *rand.Rand) *discoveryv1.EndpointSlice {
			return randomSlice(random, discoveryv1.AddressTypeIPv4, 2000, 200)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 8))
			s := sliced{config: twoZones, index: index.New(twoZones), imported: object.FromServiceImport(&mcsv1beta1.ServiceImport{
				ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "demo"},
				Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless},
			})}
			slice := func() *object.Endpoints { return object.FromEndpointSlice(tc.slice(random), true) }
			for range 20 {
				s.slices = append(s.slices, slice())
				s.check(t, "adding")
			}
			for range 200 {
				s.step(random, slice)
				s.check(t, "changing")
			}
			for len(s.slices) > 0 {
				s.slices = s.slices[1:]
				s.check(t, "removing")
			}
		})
	}
}

// TestTheNextStateHeedsNamesInOtherSlices changes an endpoint that a hostname in a slice that stays names.
func TestTheNextStateHeedsNamesInOtherSlices(t *testing.T) {
	s := sliced{config: config, imported: object.FromServiceImport(&mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "demo"},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless},
	})}
	slice := func(endpoints ...string) *object.Endpoints {
		raw := new(discoveryv1.EndpointSlice)
		unmarshal(t, from("east", "IPv4", sqlPorts, endpoints...), raw)
		return object.FromEndpointSlice(raw, false)
	}
	named := slice("{addresses: [10.1.0.1], hostname: 10-1-0-2}")
	for _, address := range []string{"10.1.0.3", "10.1.0.2", "10.1.0.4"} {
		s.slices = []*object.Endpoints{named, slice("{addresses: [" + address + "]}")}
		s.check(t, address)
	}
}

// randomSlice has endpoints with some of so many addresses and, unless they are none, hostnames.
func randomSlice(random *rand.Rand, family discoveryv1.AddressType, addresses, hosts int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			mcsv1beta1.LabelSourceCluster: []string{"east", "west", "eu.north"}[random.IntN(3)],
		}},
		AddressType: family,
		Ports:       portsOf(random.IntN(3)),
	}
	slice.Annotations = map[string]string{
		object.AnnotationSRV: []string{"", "", "priority=2", "weight=9 terminating=1"}[random.IntN(4)],
	}
	alike := random.IntN(8) == 0
	for range random.IntN(60) {
		address := address4(random.IntN(addresses)).String()
		if family == discoveryv1.AddressTypeIPv6 {
			address = fmt.Sprintf("fd00::%x", random.IntN(addresses))
		}
		ready := random.IntN(20) > 0
		endpoint := discoveryv1.Endpoint{
			Addresses: []string{address}, Zone: new([]string{"a", "b"}[random.IntN(40)/39]),
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: new(true), Terminating: new(!ready)},
		}
		if hosts > 0 && random.IntN(4) > 0 {
			endpoint.Hostname = new(fmt.Sprintf("db-%d", random.IntN(hosts)))
		}
		if hosts > 0 && alike && random.IntN(40) == 0 {
			endpoint.Hostname = new(strings.ReplaceAll(address4(random.IntN(addresses)).String(), ".", "-"))
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}
