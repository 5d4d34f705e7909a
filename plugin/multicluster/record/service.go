// SPDX-License-Identifier: Apache-2.0

// Package record makes the record set of an imported service.
//
// Records of ClusterSetIP services are made when an object changes, and all answers share them. Records of headless
// services are made when they are asked for, in a few allocations, from packed addresses: a prebuilt record takes ten
// times the memory of what it is made of, and less time to make than to pack.
//
// The package is pure.
package record

import (
	"slices"
	"sort"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// Config is what all services of an index have in common. It is immutable.
type Config struct {
	// Zones are fully qualified, in lower case.
	Zones []string
	// Reverse are the reverse zones, likewise. Their numbers follow those of Zones. The targets of their PTR records
	// are in the first of Zones. Endpoints in the cluster with the id Cluster have no PTR records.
	Reverse []string
	Cluster string
	// IgnoreEmpty leaves out ClusterSetIP services without an endpoint that is ready, or serving and terminating.
	IgnoreEmpty bool
	// TTL is that of all records, in seconds.
	TTL uint32
}

// Equal reports whether two configurations give the same answers.
func (c *Config) Equal(other *Config) bool {
	return c.TTL == other.TTL && c.Cluster == other.Cluster && c.IgnoreEmpty == other.IgnoreEmpty &&
		slices.Equal(c.Zones, other.Zones) && slices.Equal(c.Reverse, other.Reverse)
}

// maxName is the number of octets of a name without its last dot (RFC 1035, section 2.3.4).
const maxName = 253

// room is how many octets are left for labels, each with its dot, before the name of the service in the longest zone. A
// name that is too long there is in no zone.
func (c *Config) room(imported *object.Import) int {
	longest := 0
	for _, zone := range c.Zones {
		longest = max(longest, len(strings.TrimSuffix(Suffix(zone), ".")))
	}
	return maxName - longest - len(imported.Key)
}

// tooLong reports whether the name of the port's record would exceed what DNS can hold.
func (c *Config) tooLong(imported *object.Import, port object.Port) bool {
	return port.Name != "" && len("_._.")+len(port.Name)+len(port.Protocol.String()) > c.room(imported)
}

// Suffix is what follows the key of a service in a zone.
func Suffix(zone string) string { return ".svc." + strings.TrimPrefix(zone, ".") }

// Service is the record set of one imported service. It is immutable.
type Service struct {
	// Exists reports whether the service's name exists.
	Exists bool
	// Headless is that of the import.
	Headless bool

	// ClusterSetIP are the records of a ClusterSetIP service, by the number of the zone; nil while it has no address.
	ClusterSetIP []ClusterSetIP
	// Blocks are the endpoints of a headless service, sorted by address family and then by cluster.
	Blocks []Block
	// Import is what the service was built from.
	Import *object.Import
	// Skips is what was left out.
	Skips object.Skips
}

// Build makes the record set of an import and its endpoints, in any order. Endpoints count for headless services, and
// for whether a ClusterSetIP service is empty. The service keeps the import and the list of endpoints: neither may be
// changed.
func Build(config *Config, imported *object.Import, endpoints []*object.Endpoints) *Service {
	var service *Service
	var records *single
	if imported.Headless {
		service = new(Service)
	} else {
		records = new(single)
		service = &records.Service
	}
	service.Import, service.Headless = imported, imported.Headless
	service.Skips.AddAll(imported.Skips, +1)
	if imported.Refused {
		return service
	}
	if config.room(imported) < 0 {
		service.Skips.Add(object.NameTooLong, 1)
		return service
	}
	if records == nil {
		service.Blocks = buildBlocks(config, imported, endpoints, &service.Skips)
		service.Exists = slices.ContainsFunc(service.Blocks, func(b Block) bool { return b.InService })
	} else {
		records.build(config)
		service.Exists = !config.IgnoreEmpty ||
			slices.ContainsFunc(endpoints, func(e *object.Endpoints) bool { return e.Len() > 0 })
	}
	return service
}

// Key is the service's "<name>.<namespace>". If possible it is a part of the owner name in replies: a lookup that
// compares it and the packing of the reply then read the same memory, which saves a sixth of a reply among 10,000
// services.
func (s *Service) Key() string {
	if len(s.ClusterSetIP) > 0 && len(s.ClusterSetIP[0].Extra) > 0 {
		return s.ClusterSetIP[0].Extra[0].Header().Name[:len(s.Import.Key)]
	}
	return s.Import.Key
}

// Len is the number of addresses in the service's records.
func (s *Service) Len() int {
	count := len(s.Import.Addrs)
	for i := range s.Blocks {
		count += s.Blocks[i].Len()
	}
	return count
}

// ClusterBlocks returns the range of the blocks with addresses of so many octets in the cluster.
func (s *Service) ClusterBlocks(size uint8, cluster string) (from, to int) {
	from = sort.Search(len(s.Blocks), func(i int) bool {
		b := &s.Blocks[i]
		return b.Size > size || b.Size == size && b.Cluster >= cluster
	})
	for to = from; to < len(s.Blocks) && s.Blocks[to].Size == size && s.Blocks[to].Cluster == cluster; to++ {
	}
	return from, to
}

// AnswersAs reports whether both give the same answers.
func (s *Service) AnswersAs(other *Service) bool {
	return s.Exists == other.Exists && s.Headless == other.Headless &&
		s.Import.Prefer == other.Import.Prefer &&
		slices.Equal(s.Import.Addrs, other.Import.Addrs) &&
		(s.Headless || slices.Equal(s.Import.Ports, other.Import.Ports)) &&
		equalBlocks(s.Blocks, other.Blocks)
}
