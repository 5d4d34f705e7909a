// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/answer"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Snapshot is an immutable set of services with the SOA records of the zones.
type Snapshot struct {
	config     *record.Config
	services   table[*record.Service]
	namespaces table[int]      // the number of existing services in each
	reverse    table[[]string] // see reverse.go
	soa        [][]dns.RR      // by the number of the zone
	totals     Totals
	serial     uint32
	outdated   chan struct{} // shared by all snapshots of a serial
}

// Totals counts what a snapshot holds.
type Totals struct {
	// ClusterSetIP and Headless are the numbers of services that exist in DNS.
	ClusterSetIP, Headless int
	// Addresses is the number of addresses in the records of all services.
	Addresses int
	// Skips is what was left out.
	Skips object.Skips
}

// Totals counts what the snapshot holds.
func (s *Snapshot) Totals() Totals { return s.totals }

// Serial is the serial of the SOA records.
func (s *Snapshot) Serial() uint32 { return s.serial }

// Outdated is closed once the index has published a snapshot with another serial.
func (s *Snapshot) Outdated() <-chan struct{} { return s.outdated }

// SOA is the SOA record of the zone with that number. It is shared and must not be changed.
func (s *Snapshot) SOA(zone int) []dns.RR { return s.soa[zone] }

// Lookup answers a question for a name of kind Namespace or deeper. It takes no lock. It calls client only if there may
// be more records than any client can take.
func (s *Snapshot) Lookup(q *answer.Question, client func() answer.Client) answer.Answer {
	switch {
	case q.Request.Kind < name.Namespace:
		return answer.Answer{}
	case q.Request.Kind == name.Namespace:
		if _, ok := s.namespaces.getFold(q.Request.Namespace); ok {
			return answer.Answer{Result: answer.Empty}
		}
		return answer.Answer{}
	}
	service, ok := s.services.getFold(q.Request.Key)
	if !ok {
		return answer.Answer{}
	}
	return answer.Lookup(s.config, service, q, client)
}

// Walk yields the records of each service in the zone with that number, sorted by the services' keys, until yield
// returns false. The records may be shared and must not be changed.
func (s *Snapshot) Walk(zone int, yield func([]dns.RR) bool) {
	for _, e := range s.services.sorted() {
		if records := e.value.Records(s.config, zone); len(records) > 0 && !yield(records) {
			return
		}
	}
}

// apply changes one service and reports whether an answer changed.
func (s *Snapshot) apply(change Change) (moved bool) {
	before, had := s.services.get(change.Key)
	if had {
		s.count(before, -1)
	}
	if len(s.config.Reverse) > 0 {
		s.changeReverse(before, change.Service)
	}
	if change.Service == nil {
		if had {
			s.services.remove(change.Key)
		}
	} else {
		key := change.Key
		if own := change.Service.Key(); own == key {
			key = own // see Key
		}
		s.services.put(key, change.Service)
		s.count(change.Service, +1)
	}
	existed, exists := had && before.Exists, change.Service != nil && change.Service.Exists
	if existed != exists {
		s.countNamespace(change.Key, exists)
		return true
	}
	return had && change.Service != nil && !before.AnswersAs(change.Service)
}

// count adds the service to the totals, or takes it away.
func (s *Snapshot) count(service *record.Service, sign int) {
	if service.Exists {
		if service.Headless {
			s.totals.Headless += sign
		} else {
			s.totals.ClusterSetIP += sign
		}
	}
	s.totals.Addresses += sign * service.Len()
	s.totals.Skips.AddAll(service.Skips, sign)
}

// countNamespace counts the existing services of a namespace, because the namespace exists in DNS as long as one does.
func (s *Snapshot) countNamespace(key string, exists bool) {
	_, namespace, _ := strings.Cut(key, ".")
	count, _ := s.namespaces.get(namespace)
	if exists {
		count++
	} else {
		count--
	}
	if count == 0 {
		s.namespaces.remove(namespace)
	} else {
		s.namespaces.put(namespace, count)
	}
}
