// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// ClusterSetIP is the records of a ClusterSetIP service in one zone. All slices are full to their capacity.
type ClusterSetIP struct {
	A, AAAA []dns.RR
	// SRV are the records of the service name: each port number once.
	SRV []dns.RR
	// Extra are A and AAAA: the addresses of the target of all SRV records.
	Extra []dns.RR

	ports []namedPort
}

// namedPort is the records of a named port.
type namedPort struct {
	object.PortName
	srv []dns.RR
}

// Port returns the SRV records of a named port. There are none if the service has no such port.
func (c *ClusterSetIP) Port(wanted object.PortName) []dns.RR {
	at, ok := slices.BinarySearchFunc(c.ports, wanted, func(port namedPort, wanted object.PortName) int {
		return cmp.Or(cmp.Compare(port.Protocol, wanted.Protocol), strings.Compare(port.Name, wanted.Name))
	})
	if !ok {
		return nil
	}
	return c.ports[at].srv
}

// single is a ClusterSetIP service with room for its records in one zone and its A record. In one piece, they take few
// lines of the processor's cache.
type single struct {
	Service
	zones [1]ClusterSetIP
	a     dns.A
	extra [1]dns.RR
	addr  [4]byte
}

// build makes the records of the service in each zone, or none while it has no address.
func (s *single) build(config *Config) {
	imported := s.Import
	if len(imported.Addrs) == 0 {
		return
	}
	var named []object.Port
	for _, port := range imported.Ports {
		switch {
		case port.Name == "":
		case config.tooLong(imported, port):
			s.Skips.Add(object.NameTooLong, 1)
		default:
			named = append(named, port)
		}
	}
	s.ClusterSetIP = s.zones[:]
	if len(config.Zones) > 1 {
		s.ClusterSetIP = make([]ClusterSetIP, len(config.Zones))
	}
	for i, zone := range config.Zones {
		owner := imported.Key + Suffix(zone)
		extra := make([]dns.RR, len(imported.Addrs))
		if i == 0 && len(extra) == 1 && imported.Addrs[0].Is4() {
			s.addr = imported.Addrs[0].As4()
			extra = s.extra[:]
			extra[0] = SetA(&s.a, owner, config.TTL, s.addr[:])
		} else {
			for j, addr := range imported.Addrs {
				extra[j] = addressRecord(owner, config.TTL, addr.AsSlice())
			}
		}
		s.ClusterSetIP[i] = newClusterSetIP(owner, config.TTL, imported, extra, named)
	}
}

// newClusterSetIP makes the records of a zone. Extra are those of the addresses.
func newClusterSetIP(
	owner string, ttl uint32, imported *object.Import, extra []dns.RR, named []object.Port,
) ClusterSetIP {
	v4 := 0
	for v4 < len(extra) && imported.Addrs[v4].Is4() { // they are sorted
		v4++
	}
	c := ClusterSetIP{A: extra[:v4:v4], AAAA: extra[v4:], Extra: extra}
	numbers := make([]uint16, len(imported.Ports))
	for i, port := range imported.Ports {
		numbers[i] = port.Number
	}
	slices.Sort(numbers)
	for _, number := range slices.Compact(numbers) {
		c.SRV = append(c.SRV, serviceRecord(owner, ttl, owner, number))
	}
	c.SRV = slices.Clip(c.SRV)
	for len(named) > 0 {
		first := object.PortName{Name: named[0].Name, Protocol: named[0].Protocol}
		name := "_" + first.Name + "._" + first.Protocol.String() + "." + owner
		_, end := first.Range(named)
		srv := make([]dns.RR, end)
		for i, port := range named[:end] {
			srv[i] = serviceRecord(name, ttl, owner, port.Number)
		}
		c.ports = append(c.ports, namedPort{first, srv})
		named = named[end:]
	}
	c.ports = slices.Clip(c.ports)
	return c
}
