// SPDX-License-Identifier: Apache-2.0

// Package record converts Kubernetes objects into what DNS needs, builds the record sets of imported services, and
// answers queries from them with as many records as the client can take.
//
//	name ─► Request ─► Question ─► Index.Find ─► Service.Lookup ─► Answer
//
// What no record can hold is left out and counted. No Kubernetes object stays in memory. Records are made from packed
// addresses when a query asks for them, in a few allocations: a prebuilt record takes ten times the memory of its
// packed form, and making it takes less time than packing it into a message.
//
// The package is pure.
package record

import (
	"reflect"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Config is the configuration that all services of an index share. It is immutable.
type Config struct {
	// Zones are fully qualified, in lower case. The last Reverse of them are reverse zones: the targets of their PTR
	// records are in the first zone, and endpoints of the local cluster have no PTR records.
	Zones   []string
	Reverse int
	// Cluster is the id of the local cluster, in lower case; empty if unknown.
	Cluster string
	// IgnoreEmpty leaves out ClusterSetIP services without an endpoint that is ready, or serving and terminating.
	IgnoreEmpty bool
	// TTL is the TTL of all records except dns-version, in seconds.
	TTL uint32
}

// IsReverse reports whether the zone with this index is a reverse zone.
func (c *Config) IsReverse(zone int) bool { return zone >= len(c.Zones)-c.Reverse }

// maxName is the greatest number of octets of a name without its last dot (RFC 1035, section 2.3.4).
const maxName = 253

// name returns the name of the service with this key in a zone.
func name(key, zone string) string { return key + ".svc." + strings.TrimPrefix(zone, ".") }

// Service is the record set of one imported service. It is immutable.
type Service struct {
	// Exists reports whether the service's name exists.
	Exists bool
	// headless and limits are derived from the import. Each query reads them.
	headless, limits bool

	// Ports are the ports of a ClusterSetIP service.
	Ports *PortSet
	// Blocks are the addresses, or the endpoints of a headless service, in the order of their first hosts. Each block
	// is sorted by hostname and then by address; an address occurs once per host name.
	Blocks []Block
	// Import is what the service was built from.
	Import *Import
	// Skips is what was left out.
	Skips Skips

	config *Config // as it was built with
}

// Build returns the record set of an import and its endpoints, which may be in any order. It uses endpoints for
// headless services, and to find out whether a ClusterSetIP service is empty. The service refers to the configuration
// and the import, which must not be changed.
func Build(config *Config, imported *Import, endpoints []*Endpoints) *Service {
	s := &Service{Import: imported, config: config, headless: imported.Headless}
	s.limits = s.headless || len(imported.Addrs) > maxAlways
	s.Skips.AddAll(imported.Skips)
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

// room returns how many octets are available for labels, each with its dot, before the service name in the longest
// zone. All zones have the same names, so a name that is too long in one zone is left out of all.
func (s *Service) room() int {
	longest := 0
	for _, zone := range s.config.Zones[:len(s.config.Zones)-s.config.Reverse] {
		longest = max(longest, len(strings.TrimSuffix(name(s.Import.Key, zone), ".")))
	}
	return maxName - longest
}

// fitting returns the ports for a PortSet: the ports that the import declares and whose SRV names fit into a DNS name.
// It counts declared ports whose names are too long.
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
	return distinct(fit, comparePorts)
}

// answersAs reports whether two services, both of which exist, give the same answers.
func (s *Service) answersAs(other *Service) bool {
	return s.Import.Headless == other.Import.Headless && s.Import.Prefer == other.Import.Prefer &&
		reflect.DeepEqual(s.Ports, other.Ports) && reflect.DeepEqual(s.Blocks, other.Blocks)
}

// Records returns all records of the service in the zone with this index, without the limits of an answer. They may be
// shared and must not be changed.
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

// usualWeight is the weight of SRV records without AnnotationSRV: targets with the same priority get equal shares.
const usualWeight = 100

func header(owner string, rrtype uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
}
