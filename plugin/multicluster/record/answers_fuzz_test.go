// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// source makes objects from octets. After the last octet it returns zeros.
type source struct{ octets []byte }

// randomOctets returns n random octets.
func randomOctets(random *rand.Rand, n int) []byte {
	octets := make([]byte, n)
	for i := range octets {
		octets[i] = byte(random.Uint32())
	}
	return octets
}

func (s *source) n(limit int) int {
	if len(s.octets) == 0 {
		return 0
	}
	v := int(s.octets[0])
	s.octets = s.octets[1:]
	return v % limit
}

func pick[T any](s *source, from ...T) T { return from[s.n(len(from))] }

// text returns a usual string, an empty one, or an arbitrary one from the octets.
func (s *source) text(usual ...string) string {
	i := s.n(len(usual) + 2)
	switch {
	case i < len(usual):
		return usual[i]
	case i == len(usual):
		return ""
	default:
		n := min(s.n(80), len(s.octets))
		text := string(s.octets[:n])
		s.octets = s.octets[n:]
		return text
	}
}

func (s *source) address() string {
	switch s.n(8) {
	case 0, 1, 2:
		return netip.AddrFrom4([4]byte{10, 0, 0, byte(s.n(6))}).String()
	case 3, 4:
		return netip.AddrFrom16([16]byte{0xfd, 15: byte(s.n(4))}).String()
	case 5:
		return netip.AddrFrom16([16]byte{0x20, 1, 7: byte(s.n(256)), 14: byte(s.n(2))}).String()
	default:
		return s.text("127.0.0.1", "::1", "fe80::1", "None", "10.0.0.300", "0.0.0.0")
	}
}

func (s *source) serviceImport() *mcsv1beta1.ServiceImport {
	raw := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.text("db", "db", "db"), Namespace: s.text("demo", "demo", "demo"),
		},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: pick(s, mcsv1beta1.Headless, mcsv1beta1.Headless, mcsv1beta1.ClusterSetIP),
		},
	}
	for range s.n(4) {
		raw.Spec.Ports = append(raw.Spec.Ports, mcsv1beta1.ServicePort{
			Name: s.text("a", "b", "A"), Protocol: pick(s, corev1.ProtocolTCP, corev1.ProtocolUDP, ""),
			Port: int32(s.n(5)),
		})
	}
	for range s.n(4) {
		raw.Spec.IPs = append(raw.Spec.IPs, s.address())
	}
	return raw
}

func (s *source) slice() *discoveryv1.EndpointSlice {
	raw := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			mcsv1beta1.LabelSourceCluster: s.text("east", "west.eu", "eu", "East"),
		}},
		AddressType: pick(s, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN),
	}
	raw.Annotations = map[string]string{record.AnnotationSRV: s.text("", "priority=2", "priority=2 weight=9",
		"weight=7 terminating=0,2")}
	for range s.n(4) {
		port := discoveryv1.EndpointPort{}
		if s.n(4) > 0 {
			port.Name = new(s.text("a", "b"))
		}
		if s.n(4) > 0 {
			port.Port = new(int32(s.n(5)))
		}
		if s.n(4) > 0 {
			port.Protocol = new(pick(s, corev1.ProtocolTCP, corev1.ProtocolUDP, "X"))
		}
		raw.Ports = append(raw.Ports, port)
	}
	for range s.n(6) {
		endpoint := discoveryv1.Endpoint{}
		for range s.n(3) {
			endpoint.Addresses = append(endpoint.Addresses, s.address())
		}
		if s.n(2) > 0 {
			endpoint.Hostname = new(s.text("db-0", "10-0-0-1", "10-0-0-2", "fd00--1", "0--1"))
		}
		for _, condition := range []**bool{
			&endpoint.Conditions.Ready, &endpoint.Conditions.Serving, &endpoint.Conditions.Terminating,
		} {
			if s.n(3) > 0 {
				*condition = new(s.n(2) > 0)
			}
		}
		raw.Endpoints = append(raw.Endpoints, endpoint)
	}
	return raw
}

// FuzzBuild builds services from arbitrary objects: queries and transfers have the same records, all names are valid,
// and the order of the objects does not matter.
func FuzzBuild(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		f.Add(randomOctets(random, random.IntN(1200)))
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		s := &source{octets}
		imported := record.FromServiceImport(s.serviceImport())
		var all []*record.Endpoints
		for range 1 + s.n(5) {
			all = append(all, record.FromEndpointSlice(s.slice(), false))
		}
		service := record.Build(config, imported, all)
		snapshot := snapshotOf(service)
		checkZone(t, snapshot)

		slices.Reverse(all)
		x := record.NewIndex(config)
		update(x, 1, services{imported.Key: service})
		if update(x, 2, services{imported.Key: record.Build(config, imported, all)}) {
			t.Errorf("the order of slices changed an answer: %q\nand\n%q", text(walk(snapshot)), text(walk(x)))
		}
	})
}
