// SPDX-License-Identifier: Apache-2.0

// Package answer answers questions from the record set of a service: which of its records, as many as the client can
// take.
//
// Records may be shared with other answers: they must not be changed. The package is pure.
package answer

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
)

// Question is what is asked.
type Question struct {
	// Name is the name in question, as it came. Records that are made for the answer have it as their owner.
	Name string
	// Request is what the name asks for in the zone with the number Zone.
	Request name.Request
	Zone    int
	Type    uint16
	// Prefer says which endpoints come first, unless the service does.
	Prefer topology.Preference
	// Max is the greatest number of records in the answer, or 0 for all that fit.
	Max int
}

// Client is what a client can take.
type Client struct {
	// Size is the number of octets that the message may have in all. It is never 0.
	Size int
	// Reserved is how many of them are taken by the OPT record and a signature.
	Reserved int
	// Point selects the records if not all are taken. Clients with many different points get all records equally often.
	Point uint64
	// Place is where the client is. If it is not known, no endpoint comes before another.
	Place topology.Place
}

// Result is what there is at a name.
type Result uint8

const (
	// NotExist is NXDOMAIN: there is no such name.
	NotExist Result = iota
	// Empty is NODATA: the name has no records of that type, or only names below it have records.
	Empty
	// Found is at least one record.
	Found
)

// Answer is what there is to say to a question. Its slices have no spare capacity.
type Answer struct {
	Result    Result
	Answer    []dns.RR
	Extra     []dns.RR
	Truncated bool
}

// Lookup answers a question for a name of a service. It takes no lock. It calls client only if there may be more
// records than any client can take.
func Lookup(
	config *record.Config, service *record.Service, cache *Cache, q *Question, client func() Client,
) Answer {
	if service = service.In(q.Zone); !service.Exists {
		return Answer{}
	}
	if service.Import.Headless {
		h := headless{service, config, cache}
		return h.lookup(q, client)
	}
	return lookupClusterSetIP(service, q, client)
}

// portName reads labels of a query, in any case and without their underscores. ok is false if no port can have them.
func portName(port, protocol string) (wanted object.PortName, ok bool) {
	if port == "" && protocol == "" {
		return object.PortName{}, true
	}
	for p := object.TCP; p <= object.SCTP; p++ {
		if name.EqualFold(p.String(), protocol) {
			return object.PortName{Name: strings.ToLower(port), Protocol: p}, true
		}
	}
	return object.PortName{}, false
}

func lookupClusterSetIP(s *record.Service, q *Question, client func() Client) Answer {
	switch q.Request.Kind {
	case name.Service:
		if s.ClusterSetIP == nil {
			return Answer{Result: Empty}
		}
		records := &s.ClusterSetIP[q.Zone]
		switch q.Type {
		case dns.TypeA:
			return q.prebuilt(records.A, nil, client)
		case dns.TypeAAAA:
			return q.prebuilt(records.AAAA, nil, client)
		case dns.TypeSRV:
			return q.prebuilt(records.SRV, records.Extra, client)
		}
		return Answer{Result: Empty}
	case name.Port:
		wanted, ok := portName(q.Request.Port, q.Request.Protocol)
		if !ok {
			return Answer{}
		}
		if s.ClusterSetIP == nil {
			if s.Import.Declares(wanted) {
				return Answer{Result: Empty}
			}
			return Answer{}
		}
		records := &s.ClusterSetIP[q.Zone]
		switch srv := records.Port(wanted); {
		case srv == nil:
			return Answer{}
		case q.Type != dns.TypeSRV:
			return Answer{Result: Empty}
		default:
			return q.prebuilt(srv, records.Extra, client)
		}
	case name.Protocol:
		if wanted, ok := portName("", q.Request.Protocol); ok && object.HasNamed(s.Import.Ports, wanted.Protocol) {
			return Answer{Result: Empty}
		}
	}
	return Answer{}
}

// headless answers for a headless service that exists.
type headless struct {
	*record.Service
	config *record.Config
	cache  *Cache
}

func (s headless) lookup(q *Question, client func() Client) Answer {
	switch q.Request.Kind {
	case name.Service:
		if q.Type == dns.TypeA || q.Type == dns.TypeAAAA || q.Type == dns.TypeSRV {
			return s.lookupEndpoints(q, object.PortName{}, client())
		}
		return Answer{Result: Empty}
	case name.Port:
		wanted, ok := portName(q.Request.Port, q.Request.Protocol)
		if !ok || !s.anyPorts(func(ports *record.PortSet) bool { return len(ports.Numbers(wanted)) > 0 }) {
			return Answer{}
		}
		if q.Type == dns.TypeSRV {
			return s.lookupEndpoints(q, wanted, client())
		}
		return Answer{Result: Empty}
	case name.Protocol:
		wanted, ok := portName("", q.Request.Protocol)
		if ok && s.anyPorts(func(ports *record.PortSet) bool { return object.HasNamed(ports.Ports(), wanted.Protocol) }) {
			return Answer{Result: Empty}
		}
	case name.Host:
		return s.lookupHost(q, client)
	case name.Cluster:
		return s.lookupCluster(q.Request.Cluster)
	}
	return Answer{}
}

// lookupEndpoints answers with records of any number of endpoints. SRV records are those of the ports that are asked
// for.
func (s headless) lookupEndpoints(q *Question, wanted object.PortName, client Client) Answer {
	if tiers := s.tiers(q, client.Place); tiers != nil {
		return s.lookupTiers(q, wanted, client, tiers)
	}
	key, cacheable := keyOf(s.Service, q)
	if cacheable {
		if answer, ok := s.cache.find(key, q.Max, client.room(q.Name)); ok {
			return answer
		}
	}
	var answer Answer
	var fits span
	switch b := s.builder(q, client); q.Type {
	case dns.TypeA:
		answer, fits = b.addresses(4)
	case dns.TypeAAAA:
		answer, fits = b.addresses(16)
	default:
		answer, fits = b.services(wanted, nil)
	}
	if cacheable {
		s.cache.keep(key, answer, fits)
	}
	return answer
}

// lookupTiers answers with the nearest addresses, or with all SRV records, whose priorities are their tiers (RFC 2782).
func (s headless) lookupTiers(q *Question, wanted object.PortName, client Client, tiers []uint16) Answer {
	switch b := s.builder(q, client); q.Type {
	case dns.TypeA:
		return b.nearest(4, tiers)
	case dns.TypeAAAA:
		return b.nearest(16, tiers)
	default:
		answer, _ := b.services(wanted, tiers)
		return answer
	}
}

// anyPorts reports whether the ports of some SRV targets are so.
func (s headless) anyPorts(are func(*record.PortSet) bool) bool {
	var last *record.PortSet
	for i := range s.Blocks {
		if ports := s.Blocks[i].Ports; ports != last {
			if are(ports) {
				return true
			}
			last = ports
		}
	}
	return false
}

// lookupCluster finds out if host names end in these labels: a cluster id, or the last label of one.
func (s headless) lookupCluster(labels string) Answer {
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if !b.InHost {
			continue
		}
		if name.EqualFold(b.Cluster, labels) {
			return Answer{Result: Empty}
		}
		if _, last, two := strings.Cut(b.Cluster, "."); two && name.EqualFold(last, labels) {
			return Answer{Result: Empty}
		}
	}
	return Answer{}
}

// lookupHost answers for a host name.
func (s headless) lookupHost(q *Question, client func() Client) Answer {
	label := strings.ToLower(q.Request.Host)
	var size uint8
	switch q.Type {
	case dns.TypeA:
		size = 4
	case dns.TypeAAAA:
		size = 16
	}
	var addr netip.Addr
	parsed, exists := false, false
	var few [4][]byte // few hosts have more addresses
	found := few[:0]
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if !b.InHost || !name.EqualFold(b.Cluster, q.Request.Cluster) {
			continue
		}
		if !b.Named && !parsed {
			addr = record.ParseHostLabel(label)
			parsed = true
		}
		from, to := b.Find(label, addr)
		exists = exists || from < to
		for ; b.Size == size && from < to; from++ {
			found = append(found, b.Addr(from))
		}
	}
	switch {
	case len(found) == 1:
		return answerOf(single(q.Name, s.config.TTL, found[0]), nil, false)
	case len(found) > 1:
		return s.builder(q, client()).hostAddresses(found, size)
	case exists:
		return Answer{Result: Empty}
	default:
		return s.lookupCluster(q.Request.Prefix)
	}
}
