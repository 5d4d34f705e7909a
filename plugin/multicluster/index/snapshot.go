// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/miekg/dns"
)

// Index publishes the services of a clusterset. Any number of goroutines may take snapshots of it, while one updates it.
type Index struct {
	config  *Config
	current atomic.Pointer[Snapshot]
}

// New makes an index that has no snapshot before its first update.
func New(config *Config) *Index { return &Index{config: config} }

// Config is what the index was made with.
func (x *Index) Config() *Config { return x.config }

// Snapshot is the present state, or nil before the first update.
func (x *Index) Snapshot() *Snapshot { return x.current.Load() }

// Change is a new state of one service.
type Change struct {
	// Key is that of the service.
	Key string
	// Service is nil where the service is gone.
	Service *Service
}

// Update publishes all changes at once; it must not run twice at a time. The serial moves if an answer changed, and only
// then: to now, or to the next number where now is not greater (RFC 1982). It returns whether it moved.
func (x *Index) Update(now uint32, changes ...Change) bool {
	before := x.current.Load()
	var next Snapshot
	if before == nil {
		next = Snapshot{
			config: x.config, services: newTable[*Service](), namespaces: newTable[int](), reverse: newTable[[]string](),
			recent: newRecent(),
		}
	} else {
		next = *before
	}
	moved := before == nil
	next.services, next.namespaces, next.reverse = next.services.editing(), next.namespaces.editing(), next.reverse.editing()
	for _, change := range changes {
		moved = next.apply(change) || moved
	}
	next.services, next.namespaces, next.reverse = next.services.done(), next.namespaces.done(), next.reverse.done()
	next.recent.forget(next.services)
	if moved {
		if before == nil || newer(now, before.serial) {
			next.serial = now
		} else {
			next.serial = before.serial + 1
		}
		next.soa = makeSOA(x.config, next.serial)
		next.outdated = make(chan struct{})
	}
	x.current.Store(&next)
	if moved && before != nil {
		close(before.outdated)
	}
	return moved
}

// newer tells whether serial a comes after b (RFC 1982, section 3.2).
func newer(a, b uint32) bool { return a != b && a-b < 1<<31 }

// Snapshot is an immutable set of services. What it remembers of answers only makes others faster.
type Snapshot struct {
	config     *Config
	services   table[*Service]
	namespaces table[int]      // the number of existing services in each
	reverse    table[[]string] // see reverse.go
	soa        [][]dns.RR      // by the number of the zone
	recent     *recent         // shared by all snapshots of an index
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
	Skips Skips
}

// Totals counts what the snapshot holds.
func (s *Snapshot) Totals() Totals { return s.totals }

// Serial is the serial of the SOA records.
func (s *Snapshot) Serial() uint32 { return s.serial }

// Outdated is closed once the index has published a snapshot with another serial.
func (s *Snapshot) Outdated() <-chan struct{} { return s.outdated }

// SOA is the SOA record of the zone with that number. It is shared and must not be changed.
func (s *Snapshot) SOA(zone int) []dns.RR { return s.soa[zone] }

// apply changes one service and returns whether an answer changed.
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
			s.services = s.services.without(change.Key)
		}
	} else {
		s.services = s.services.with(change.Key, change.Service)
		s.count(change.Service, +1)
	}
	existed, exists := had && before.exists, change.Service != nil && change.Service.exists
	if existed != exists {
		s.countNamespace(change.Key, exists)
		return true
	}
	return had && change.Service != nil && !before.answersAs(change.Service)
}

// count adds the service to the totals, or takes it away.
func (s *Snapshot) count(service *Service, sign int) {
	if service.exists {
		if service.Headless() {
			s.totals.Headless += sign
		} else {
			s.totals.ClusterSetIP += sign
		}
	}
	s.totals.Addresses += sign * service.Len()
	if service.skips != nil {
		for i, n := range service.skips.counts {
			s.totals.Skips.counts[i] += uint32(sign) * n
		}
	}
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
		s.namespaces = s.namespaces.without(namespace)
	} else {
		s.namespaces = s.namespaces.with(namespace, count)
	}
}

// Times of the SOA records, in seconds, as CoreDNS's kubernetes plugin has them.
const (
	soaRefresh = 7200
	soaRetry   = 1800
	soaExpire  = 86400
)

// makeSOA makes the SOA records of all zones.
func makeSOA(config *Config, serial uint32) [][]dns.RR {
	soa := make([][]dns.RR, len(config.Zones)+len(config.Reverse))
	for i, zone := range slices.Concat(config.Zones, config.Reverse) {
		server := config.Zones[0]
		if i < len(config.Zones) {
			server = zone
		}
		soa[i] = []dns.RR{&dns.SOA{
			Hdr:     dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: config.TTL},
			Ns:      NameServer(server),
			Mbox:    Join("hostmaster", server),
			Serial:  serial,
			Refresh: soaRefresh,
			Retry:   soaRetry,
			Expire:  soaExpire,
			Minttl:  config.TTL,
		}}
	}
	return soa
}

// NameServer is the name of the server of a zone.
func NameServer(zone string) string { return Join("ns.dns", zone) }

// Join puts labels before a zone.
func Join(labels, zone string) string {
	if zone == "." {
		return labels + "."
	}
	return labels + "." + zone
}
