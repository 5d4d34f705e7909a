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

// buildClusterSetIP makes the records of a ClusterSetIP service in each zone, or none while it has no address.
func buildClusterSetIP(config *Config, imported *object.Import, skips *object.Skips) []ClusterSetIP {
	if len(imported.Addrs) == 0 {
		return nil
	}
	var named []object.Port
	for _, port := range imported.Ports {
		switch {
		case port.Name == "":
		case config.tooLong(imported, port):
			skips.Add(object.NameTooLong, 1)
		default:
			named = append(named, port)
		}
	}
	all := make([]ClusterSetIP, len(config.Zones))
	for i, zone := range config.Zones {
		all[i] = newClusterSetIP(imported.Key+Suffix(zone), config.TTL, imported, named)
	}
	return all
}

func newClusterSetIP(owner string, ttl uint32, imported *object.Import, named []object.Port) ClusterSetIP {
	var c ClusterSetIP
	c.Extra = make([]dns.RR, len(imported.Addrs))
	v4 := 0
	for i, addr := range imported.Addrs { // sorted: IPv4 comes first
		c.Extra[i] = addressRecord(owner, ttl, addr.AsSlice())
		if addr.Is4() {
			v4++
		}
	}
	c.A, c.AAAA = c.Extra[:v4:v4], c.Extra[v4:]
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
