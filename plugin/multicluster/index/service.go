// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"sort"
	"strings"
)

// Config is what all services of an index have in common. It is immutable.
type Config struct {
	// Zones are fully qualified, in lower case.
	Zones []string
	// Reverse are the reverse zones, likewise. Their numbers follow those of Zones. The targets of their PTR records are in
	// the first of Zones, and endpoints in the cluster with the id Cluster have none.
	Reverse []string
	Cluster string

	// IgnoreEmpty leaves out ClusterSetIP services without a ready endpoint, or one that is serving and terminating.
	IgnoreEmpty bool

	// only is the number of the one zone whose length counts, from 1; 0: all do.
	only int
	// TTL is that of all records, in seconds.
	TTL uint32
}

// Equal tells whether two configurations give the same answers.
func (c *Config) Equal(other *Config) bool {
	return c.TTL == other.TTL && c.Cluster == other.Cluster && c.IgnoreEmpty == other.IgnoreEmpty &&
		slices.Equal(c.Zones, other.Zones) &&
		slices.Equal(c.Reverse, other.Reverse)
}

// maxSuffix is the length of what follows the service's key in the longest zone, without the last dot.
func (c *Config) maxSuffix() int {
	longest := 0
	for i, zone := range c.Zones {
		if c.only == 0 || c.only == i+1 {
			longest = max(longest, len(strings.TrimSuffix(zone, ".")))
		}
	}
	return len(serviceInfix) + longest
}

// serviceInfix joins a service's key and the zone.
const serviceInfix = ".svc."

// Service is the record set of one imported service. It is immutable.
type Service struct {
	imported *Import
	// virtual are the records of a ClusterSetIP service, by the number of the zone; nil where it has no address yet.
	virtual []virtual
	// runs are the endpoints of a headless service.
	runs  []run
	skips *Skips
	// exists tells whether the service's name does.
	exists bool
	// zones are the states of the service in each zone, if a name is too long in one of them; else nil. This one is then
	// what it is in all of them, and exists if one of them does.
	zones []*Service
}

// Build makes the record set of an import and the slices that carry its endpoints, in any order. Endpoints count for
// headless services, and for whether a ClusterSetIP service is empty. It keeps the import and parts of the slices, and changes neither.
func Build(config *Config, imported *Import, endpoints []*Slice) *Service {
	service := build(config, imported, endpoints)
	if service.skips.Count(NameTooLong) == 0 || len(config.Zones) < 2 {
		return service
	}
	for i := range config.Zones {
		one := *config
		one.only = i + 1
		state := build(&one, imported, endpoints)
		service.zones = append(service.zones, state)
		service.exists = service.exists || state.exists
	}
	return service
}

// in is the service as it is in the zone with that number.
func (s *Service) in(zone int) *Service {
	if s.zones == nil {
		return s
	}
	return s.zones[zone]
}

// build makes the record set with the names that fit into all zones that count.
func build(config *Config, imported *Import, endpoints []*Slice) *Service {
	service := &Service{imported: imported}
	mergeSkips(&service.skips, imported.skips)
	if imported.refused {
		return service
	}
	if len(imported.Key)+config.maxSuffix() > maxName {
		skip(&service.skips, NameTooLong)
		return service
	}
	if imported.Headless {
		service.runs = buildRuns(config, imported, endpoints, &service.skips)
		service.exists = slices.ContainsFunc(service.runs, func(r run) bool { return r.inService })
	} else {
		service.virtual = buildVirtual(config, imported, &service.skips)
		service.exists = !config.IgnoreEmpty || slices.ContainsFunc(endpoints, func(s *Slice) bool { return s.Len() > 0 })
	}
	return service
}

// Key is the service's "<name>.<namespace>".
func (s *Service) Key() string { return s.imported.Key }

// Headless tells the service's type.
func (s *Service) Headless() bool { return s.imported.Headless }

// Len is the number of addresses the service holds in its records.
func (s *Service) Len() int {
	count := len(s.imported.addrs)
	for i := range s.runs {
		count += s.runs[i].len()
	}
	return count
}

// clusterRuns returns the range of the runs that have addresses of so many octets in the cluster.
func (s *Service) clusterRuns(size uint8, cluster string) (from, to int) {
	from = sort.Search(len(s.runs), func(i int) bool {
		r := &s.runs[i]
		return r.size > size || r.size == size && r.cluster >= cluster
	})
	for to = from; to < len(s.runs) && s.runs[to].size == size && s.runs[to].cluster == cluster; to++ {
	}
	return from, to
}

// Skips are what was left out of the service.
func (s *Service) Skips() *Skips { return s.skips }

// answersAs tells whether both give the same answers.
func (s *Service) answersAs(other *Service) bool {
	return s.exists == other.exists && s.imported.Headless == other.imported.Headless &&
		s.imported.prefer == other.imported.prefer &&
		slices.Equal(s.imported.addrs, other.imported.addrs) &&
		(s.imported.Headless || slices.Equal(s.imported.ports, other.imported.ports)) &&
		equalRuns(s.runs, other.runs) && slices.EqualFunc(s.zones, other.zones, (*Service).answersAs)
}
