// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"github.com/miekg/dns"
)

// virtual are the records of a ClusterSetIP service in one zone. All slices are full to their capacity.
type virtual struct {
	a, aaaa []dns.RR
	// srv are the records of the service name: each port number once.
	srv []dns.RR
	// extra are a and aaaa: the addresses of the target of all SRV records.
	extra []dns.RR
	ports []virtualPort
}

// virtualPort are the records of a named port.
type virtualPort struct {
	name     string
	protocol Protocol
	srv      []dns.RR
}

// buildVirtual makes the records of a ClusterSetIP service, or none while it has no address.
func buildVirtual(config *Config, imported *Import, skips **Skips) []virtual {
	if len(imported.addrs) == 0 {
		return nil
	}
	var named []Port
	for _, port := range imported.ports {
		switch {
		case port.Name == "":
		case portNameTooLong(config, imported, port):
			skip(skips, NameTooLong)
		default:
			named = append(named, port)
		}
	}
	all := make([]virtual, len(config.Zones))
	for i, zone := range config.Zones {
		all[i] = newVirtual(imported.Key+serviceSuffix(zone), config.TTL, imported, named)
	}
	return all
}

func newVirtual(owner string, ttl uint32, imported *Import, named []Port) virtual {
	var v virtual
	v.extra = make([]dns.RR, len(imported.addrs))
	v4 := 0
	for i, addr := range imported.addrs { // sorted: IPv4 comes first
		v.extra[i] = addressRecord(owner, ttl, addr.AsSlice())
		if addr.Is4() {
			v4++
		}
	}
	v.a, v.aaaa = v.extra[:v4:v4], v.extra[v4:]
	numbers := make([]uint16, len(imported.ports))
	for i, port := range imported.ports {
		numbers[i] = port.Number
	}
	slices.Sort(numbers)
	for _, number := range slices.Compact(numbers) {
		v.srv = append(v.srv, serviceRecord(owner, ttl, owner, number))
	}
	v.srv = slices.Clip(v.srv)
	for start := 0; start < len(named); {
		first := named[start]
		name := "_" + first.Name + "._" + first.Protocol.String() + "." + owner
		var srv []dns.RR
		for ; start < len(named) && named[start].Name == first.Name && named[start].Protocol == first.Protocol; start++ {
			srv = append(srv, serviceRecord(name, ttl, owner, named[start].Number))
		}
		v.ports = append(v.ports, virtualPort{first.Name, first.Protocol, slices.Clip(srv)})
	}
	v.ports = slices.Clip(v.ports)
	return v
}
