// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
)

// Question is what is asked of a snapshot.
type Question struct {
	// Name is the name in question, as it came. Records that are made for the answer have it as their owner.
	Name string
	// Request is what the name asks for in the zone with the number Zone.
	Request name.Request
	Zone    int
	Type    uint16
	// Prefer is which endpoints come first of services that say nothing themselves.
	Prefer Preference
	// Max is the greatest number of records in the answer, or 0 for all that fit.
	Max int
	// Client is what the client can take. It may be left out, and is only needed where Lookup says so.
	Client Client
}

// Client is what a client can take.
type Client struct {
	// Size is the number of octets that the message may have in all. It is never 0.
	Size int
	// Reserved is how many of them go to what is in it beside header, question and records: the OPT record.
	Reserved int
	// Point is where to begin where not all records are taken. Clients with many different points get all records
	// alike often.
	Point uint64
	// Place is where the client is. It may be left out, and then no endpoint comes before another.
	Place Place
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
	// NeedClient is no answer: there may be more records than the client can take, and the question does not say what
	// it can take. It is to be put again with that.
	NeedClient
)

// Answer is what a snapshot has to say to a question. Its slices have no spare capacity. Records may be shared with
// other answers: they must not be changed.
type Answer struct {
	Result    Result
	Answer    []dns.RR
	Extra     []dns.RR
	Truncated bool
}

// Lookup answers a question for a name of kind Namespace or deeper. It takes no lock.
func (s *Snapshot) Lookup(q *Question) Answer {
	request := &q.Request
	if request.Kind < name.Namespace {
		return Answer{}
	}
	if request.Kind == name.Namespace {
		if _, ok := s.namespaces.getFold(request.Namespace); ok {
			return Answer{Result: Empty}
		}
		return Answer{}
	}
	service, ok := s.services.getFold(request.Key)
	if !ok {
		return Answer{}
	}
	if service = service.in(q.Zone); !service.exists {
		return Answer{}
	}
	if service.imported.Headless {
		return service.lookupHeadless(s.config, s.recent, q)
	}
	return service.lookupVirtual(q)
}

// lookupVirtual answers for a ClusterSetIP service.
func (s *Service) lookupVirtual(q *Question) Answer {
	switch q.Request.Kind {
	case name.Service:
		if s.virtual == nil {
			return Answer{Result: Empty}
		}
		v := &s.virtual[q.Zone]
		switch q.Type {
		case dns.TypeA:
			return q.prebuilt(v.a, nil)
		case dns.TypeAAAA:
			return q.prebuilt(v.aaaa, nil)
		case dns.TypeSRV:
			return q.prebuilt(v.srv, v.extra)
		}
		return Answer{Result: Empty}
	case name.Port:
		return s.lookupVirtualPort(q)
	case name.Protocol:
		if wanted, ok := portNameOf("", q.Request.Protocol); ok && hasNamed(s.imported.ports, wanted.protocol) {
			return Answer{Result: Empty}
		}
	}
	return Answer{}
}

func (s *Service) lookupVirtualPort(q *Question) Answer {
	wanted, ok := portNameOf(q.Request.Port, q.Request.Protocol)
	if !ok {
		return Answer{}
	}
	if s.virtual == nil {
		if s.imported.declares(Port{Name: wanted.name, Protocol: wanted.protocol}) {
			return Answer{Result: Empty}
		}
		return Answer{}
	}
	v := &s.virtual[q.Zone]
	at, ok := slices.BinarySearchFunc(v.ports, wanted, func(port virtualPort, wanted portName) int {
		return comparePorts(Port{Name: port.name, Protocol: port.protocol}, Port{Name: wanted.name, Protocol: wanted.protocol})
	})
	switch {
	case !ok:
		return Answer{}
	case q.Type != dns.TypeSRV:
		return Answer{Result: Empty}
	default:
		return q.prebuilt(v.ports[at].srv, v.extra)
	}
}

// lookupHeadless answers for a headless service that exists.
func (s *Service) lookupHeadless(config *Config, recent *recent, q *Question) Answer {
	switch q.Request.Kind {
	case name.Service:
		if q.Type == dns.TypeA || q.Type == dns.TypeAAAA || q.Type == dns.TypeSRV {
			return s.lookupEndpoints(config, recent, q, portName{})
		}
		return Answer{Result: Empty}
	case name.Port:
		wanted, ok := portNameOf(q.Request.Port, q.Request.Protocol)
		if !ok || !s.leads(func(ports *portSet) bool { return len(ports.of(wanted)) > 0 }) {
			return Answer{}
		}
		if q.Type == dns.TypeSRV {
			return s.lookupEndpoints(config, recent, q, wanted)
		}
		return Answer{Result: Empty}
	case name.Protocol:
		wanted, ok := portNameOf("", q.Request.Protocol)
		if ok && s.leads(func(ports *portSet) bool { return hasNamed(ports.list(), wanted.protocol) }) {
			return Answer{Result: Empty}
		}
	case name.Host:
		return s.lookupHost(config, q)
	case name.Cluster:
		return s.lookupCluster(q.Request.Cluster)
	}
	return Answer{}
}

// lookupEndpoints answers with records of any number of endpoints. SRV records are those of the ports that are asked for.
func (s *Service) lookupEndpoints(config *Config, recent *recent, q *Question, wanted portName) Answer {
	if q.Client.Size == 0 {
		return Answer{Result: NeedClient}
	}
	if tiers := s.tiers(q); tiers != nil {
		return s.lookupTiers(config, q, wanted, tiers)
	}
	key, memorable := keyOf(s, q)
	if memorable {
		if answer, ok := recent.find(key, q); ok {
			return answer
		}
	}
	var answer Answer
	var part part
	var octets int
	switch b := s.builder(config, q); q.Type {
	case dns.TypeA:
		answer, part = b.addresses(4)
		octets = len(answer.Answer) * addressSize(4)
	case dns.TypeAAAA:
		answer, part = b.addresses(16)
		octets = len(answer.Answer) * addressSize(16)
	default:
		answer, part, octets = b.services(wanted, nil)
	}
	if memorable && part != some {
		recent.keep(key, answer, octets, part == whole, q.Client.room(q.Name))
	}
	return answer
}

// lookupTiers answers with the nearest addresses, or with all SRV records, whose priorities are their tiers (RFC 2782).
func (s *Service) lookupTiers(config *Config, q *Question, wanted portName, tiers []uint16) Answer {
	switch b := s.builder(config, q); q.Type {
	case dns.TypeA:
		return b.nearest(4, tiers)
	case dns.TypeAAAA:
		return b.nearest(16, tiers)
	default:
		answer, _, _ := b.services(wanted, tiers)
		return answer
	}
}

// leads tells whether there are SRV records for ports of which this is so.
func (s *Service) leads(are func(*portSet) bool) bool {
	var last *portSet
	for i := range s.runs {
		if ports := s.runs[i].ports; ports != last {
			if are(ports) {
				return true
			}
			last = ports
		}
	}
	return false
}

// lookupCluster tells whether host names end in these labels: a cluster id, or the last label of one.
func (s *Service) lookupCluster(labels string) Answer {
	for i := range s.runs {
		r := &s.runs[i]
		if !r.inHost {
			continue
		}
		if equalFold(r.cluster, labels) {
			return Answer{Result: Empty}
		}
		if _, last, two := strings.Cut(r.cluster, "."); two && equalFold(last, labels) {
			return Answer{Result: Empty}
		}
	}
	return Answer{}
}

// maxHostAddresses is how many addresses of a host name are looked at without an allocation. Few hosts have more.
const maxHostAddresses = 4

// lookupHost answers for a host name.
func (s *Service) lookupHost(config *Config, q *Question) Answer {
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
	var few [maxHostAddresses][]byte
	found := few[:0]
	for i := range s.runs {
		r := &s.runs[i]
		if !r.inHost || !equalFold(r.cluster, q.Request.Cluster) {
			continue
		}
		if !r.named && !parsed {
			addr = parseHostLabel(label)
			parsed = true
		}
		from, to := r.find(label, addr)
		exists = exists || from < to
		for ; r.size == size && from < to; from++ {
			found = append(found, r.addr(from))
		}
	}
	switch {
	case len(found) == 1:
		return answerOf(single(q.Name, config.TTL, found[0]), nil, false)
	case len(found) > 1 && q.Client.Size == 0:
		return Answer{Result: NeedClient}
	case len(found) > 1:
		return s.builder(config, q).hostAddresses(found, size)
	case exists:
		return Answer{Result: Empty}
	default:
		return s.lookupCluster(q.Request.Prefix)
	}
}
