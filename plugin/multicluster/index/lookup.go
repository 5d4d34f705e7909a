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
	// Size is the number of octets that the message may have in all, and Reserved how many of them go to what is in it
	// beside header, question and records of the answer: the OPT record.
	Size, Reserved int
	// Max is the greatest number of records in the answer, or 0 for all that fit.
	Max int
	// Point is where to begin where not all records are taken. Askers with many different points get all of them
	// alike often.
	Point uint64
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

// Answer is what a snapshot has to say to a question. Its slices have no spare capacity. Records may be shared with
// other answers: they must not be changed.
type Answer struct {
	Result    Result
	Answer    []dns.RR
	Extra     []dns.RR
	Truncated bool
}

// Lookup answers a question for a name of kind Namespace or deeper. It takes no lock and changes nothing.
func (s *Snapshot) Lookup(q *Question) Answer {
	request := &q.Request
	if request.Kind < name.Namespace {
		return Answer{}
	}
	if request.Kind == name.Namespace {
		if _, ok := s.namespaces.get(strings.ToLower(request.Namespace)); ok {
			return Answer{Result: Empty}
		}
		return Answer{}
	}
	service, ok := s.services.get(strings.ToLower(request.Key))
	if !ok || !service.exists {
		return Answer{}
	}
	if service.imported.Headless {
		return service.lookupHeadless(s.config, q)
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
		for _, port := range s.imported.ports {
			if port.Name != "" && strings.EqualFold(port.Protocol.String(), q.Request.Protocol) {
				return Answer{Result: Empty}
			}
		}
	}
	return Answer{}
}

func (s *Service) lookupVirtualPort(q *Question) Answer {
	if s.virtual == nil {
		if slices.ContainsFunc(s.imported.ports, q.named()) {
			return Answer{Result: Empty}
		}
		return Answer{}
	}
	v := &s.virtual[q.Zone]
	for i := range v.ports {
		port := &v.ports[i]
		if !strings.EqualFold(port.name, q.Request.Port) ||
			!strings.EqualFold(port.protocol.String(), q.Request.Protocol) {
			continue
		}
		if q.Type == dns.TypeSRV {
			return q.prebuilt(port.srv, v.extra)
		}
		return Answer{Result: Empty}
	}
	return Answer{}
}

// named returns what tells whether a port is the one whose name is in question.
func (q *Question) named() func(Port) bool {
	return func(port Port) bool {
		return port.Name != "" && strings.EqualFold(port.Name, q.Request.Port) &&
			strings.EqualFold(port.Protocol.String(), q.Request.Protocol)
	}
}

// anyPort matches each port.
func anyPort(Port) bool { return true }

// lookupHeadless answers for a headless service that exists.
func (s *Service) lookupHeadless(config *Config, q *Question) Answer {
	b := answerBuilder{service: s, question: q, ttl: config.TTL, zone: config.Zones[q.Zone]}
	switch q.Request.Kind {
	case name.Service:
		switch q.Type {
		case dns.TypeA:
			return b.addresses(4)
		case dns.TypeAAAA:
			return b.addresses(16)
		case dns.TypeSRV:
			return b.services(anyPort)
		}
		return Answer{Result: Empty}
	case name.Port:
		named := q.named()
		if !s.leads(named) {
			return Answer{}
		}
		if q.Type == dns.TypeSRV {
			return b.services(named)
		}
		return Answer{Result: Empty}
	case name.Protocol:
		if s.leads(func(p Port) bool {
			return p.Name != "" && strings.EqualFold(p.Protocol.String(), q.Request.Protocol)
		}) {
			return Answer{Result: Empty}
		}
	case name.Host:
		return b.host()
	case name.Cluster:
		return s.lookupCluster(q.Request.Cluster)
	}
	return Answer{}
}

// leads tells whether there is an SRV record for a port that matches.
func (s *Service) leads(match func(Port) bool) bool {
	for i := range s.runs {
		if s.runs[i].lead && slices.ContainsFunc(s.runs[i].ports, match) {
			return true
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
		if strings.EqualFold(r.cluster, labels) {
			return Answer{Result: Empty}
		}
		if _, last, two := strings.Cut(r.cluster, "."); two && strings.EqualFold(last, labels) {
			return Answer{Result: Empty}
		}
	}
	return Answer{}
}

// host answers for a host name.
func (b *answerBuilder) host() Answer {
	request := &b.question.Request
	label := strings.ToLower(request.Host)
	var addr netip.Addr
	parsed, exists := false, false
	count, size := 0, 0
	switch b.question.Type {
	case dns.TypeA:
		size = 4
	case dns.TypeAAAA:
		size = 16
	}
	var few [4]pick
	picks := few[:0]
	for i := range b.service.runs {
		r := &b.service.runs[i]
		if !r.inHost || !strings.EqualFold(r.cluster, request.Cluster) {
			continue
		}
		if !r.named && !parsed {
			addr, _ = parseHostLabel(label)
			parsed = true
		}
		from, to := r.find(label, addr)
		exists = exists || from < to
		if int(r.size) != size {
			continue
		}
		for ; from < to; from++ {
			picks = append(picks, pick{run: int32(i), entry: int32(from)})
			count++
		}
	}
	if !exists {
		return b.service.lookupCluster(request.Prefix)
	}
	if count == 0 {
		return Answer{Result: Empty}
	}
	return b.hostAddresses(picks, uint8(size))
}
