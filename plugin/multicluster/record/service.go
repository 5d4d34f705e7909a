// SPDX-License-Identifier: Apache-2.0

// Package record reads Kubernetes objects into what DNS needs of them, makes the record sets of imported services of it, and
// answers from them: which of their records, as many as the client can take.
//
//	name ─► Request ─► Question ─► Index.Find ─► Service.Lookup ─► Answer
//
// What no record can hold is left out and counted, and nothing of an object is kept. Records are made when they are asked for,
// in a few allocations, from packed addresses: a prebuilt record takes ten times the memory of what it is made of, and less
// time to make than to pack.
//
// The package is pure.
package record

import (
	"reflect"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Config is what all services of an index have in common. It is immutable.
type Config struct {
	// Zones are fully qualified, in lower case. The last ones, of which there are Reverse, are reverse zones: the targets
	// of their PTR records are in the first of Zones, and endpoints in the local cluster have none.
	Zones   []string
	Reverse int
	// Cluster is the id of the local cluster, in lower case; empty if it is not known.
	Cluster string
	// IgnoreEmpty leaves out ClusterSetIP services without an endpoint that is ready, or serving and terminating.
	IgnoreEmpty bool
	// TTL is that of all records, in seconds.
	TTL uint32
}

// IsReverse reports whether that is the number of a reverse zone.
func (c *Config) IsReverse(zone int) bool { return zone >= len(c.Zones)-c.Reverse }

// maxName is the number of octets of a name without its last dot (RFC 1035, section 2.3.4).
const maxName = 253

// name is the name of the service with that key in a zone.
func name(key, zone string) string { return key + ".svc." + strings.TrimPrefix(zone, ".") }

// Service is the record set of one imported service. It is immutable.
type Service struct {
	// Exists reports whether the service's name exists.
	Exists bool
	// headless and limits are of the import, beside what each query reads.
	headless, limits bool

	// Ports are those of a ClusterSetIP service.
	Ports *PortSet
	// Blocks are the addresses, or the endpoints of a headless service, in the order of their first hosts. Each is sorted by
	// hostname and then by address; an address appears once under one host name.
	Blocks []Block
	// Import is what the service was built from.
	Import *Import
	// Skips is what was left out.
	Skips Skips

	config *Config // as it was built with
}

// Build makes the record set of an import and its endpoints, in any order. Endpoints count for headless services, and
// for whether a ClusterSetIP service is empty. The service keeps the configuration and the
// import, which must not be changed.
func Build(config *Config, imported *Import, endpoints []*Endpoints) *Service {
	s := &Service{Import: imported, config: config, headless: imported.Headless}
	s.limits = s.headless || len(imported.Addrs) > maxAlways
	s.Skips.AddAll(imported.Skips, +1)
	switch {
	case imported.Refused:
	case s.room() < 0:
		s.Skips.Add(NameTooLong, 1)
	case imported.Headless:
		s.buildHeadless(endpoints)
		s.Exists = slices.ContainsFunc(s.Blocks, func(b Block) bool { return b.InService })
	default:
		s.buildClusterSetIP()
		s.Exists = !config.IgnoreEmpty ||
			slices.ContainsFunc(endpoints, func(e *Endpoints) bool { return e.Len() > 0 })
	}
	return s
}

// room is how many octets are left for labels, each with its dot, before the name of the service in the longest zone. A
// name that is too long there is in no zone.
func (s *Service) room() int {
	longest := 0
	for _, zone := range s.config.Zones[:len(s.config.Zones)-s.config.Reverse] {
		longest = max(longest, len(strings.TrimSuffix(name(s.Import.Key, zone), ".")))
	}
	return maxName - longest
}

// fitting are, for a set, those of the ports that the import declares and whose records have names that DNS can hold. Others
// that it declares are left out.
func (s *Service) fitting(ports []Port) (fit []Port) {
	for _, port := range ports {
		switch {
		case !s.Import.Declares(port):
		case !port.named():
			fit = append(fit, Port{Number: port.Number})
		case len(port.Label+".") > s.room():
			s.Skips.Add(NameTooLong, 1)
		default:
			fit = append(fit, Port{Number: port.Number}, port)
		}
	}
	return sortPorts(fit)
}

// answersAs reports whether both, which exist, give the same answers.
func (s *Service) answersAs(other *Service) bool {
	return s.Import.Headless == other.Import.Headless && s.Import.Prefer == other.Import.Prefer &&
		reflect.DeepEqual(s.Ports, other.Ports) && reflect.DeepEqual(s.Blocks, other.Blocks)
}

// Records are all records of the service in the zone with that number: what queries answer, whatever limits they are
// under. They may be shared and must not be changed.
func (s *Service) Records(zone int) []dns.RR {
	if !s.Exists {
		return nil
	}
	var out addressList
	owner, ttl := name(s.Import.Key, s.config.Zones[zone]), s.config.TTL
	if !s.headless && len(s.Blocks) > 0 {
		for _, port := range s.Ports.ports {
			of := header(port.owner(owner), dns.TypeSRV, ttl)
			out.records = append(out.records, &dns.SRV{Hdr: of, Weight: usualWeight, Port: port.Number, Target: owner})
		}
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		for j := range b.Len() {
			host := string(b.AppendHost(nil, j)) + "." + b.Cluster + "." + owner
			if b.InService {
				out.add(owner, ttl, b.Addr(j))
			}
			if b.InHost {
				out.add(host, ttl, b.Addr(j))
			}
			if !b.Target {
				continue
			}
			for _, port := range b.Ports.ports {
				out.records = append(out.records, &dns.SRV{
					Hdr:      header(port.owner(owner), dns.TypeSRV, ttl),
					Priority: uint16(b.Priority), Weight: b.Weight, Port: port.Number, Target: host,
				})
			}
		}
	}
	return out.records
}

// usualWeight is that of SRV records that have none of their own: no target of a priority is preferred.
const usualWeight = 100

func header(owner string, rrtype uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}
