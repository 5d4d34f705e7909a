// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"
)

// Config is what all services of an index have in common. It is immutable.
type Config struct {
	// Zones are fully qualified, in lower case.
	Zones []string
	// TTL is that of all records, in seconds.
	TTL uint32
}

// maxSuffix is the length of what follows the service's key in the longest zone, without the last dot.
func (c *Config) maxSuffix() int {
	longest := 0
	for _, zone := range c.Zones {
		longest = max(longest, len(strings.TrimSuffix(zone, ".")))
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
}

// Build makes the record set of an import and the slices that carry its endpoints, in any order. Endpoints count for
// headless services only. It keeps the import and parts of the slices, and changes neither.
func Build(config *Config, imported *Import, endpoints []*Slice) *Service {
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
		service.exists = true
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

// Skips are what was left out of the service.
func (s *Service) Skips() *Skips { return s.skips }

// answersAs tells whether both give the same answers.
func (s *Service) answersAs(other *Service) bool {
	return s.exists == other.exists && s.imported.Headless == other.imported.Headless &&
		s.imported.prefer == other.imported.prefer &&
		slices.Equal(s.imported.addrs, other.imported.addrs) &&
		(s.imported.Headless || slices.Equal(s.imported.ports, other.imported.ports)) &&
		slices.EqualFunc(s.runs, other.runs, run.equal)
}
