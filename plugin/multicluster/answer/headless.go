// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

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
		if ok && s.anyPorts(func(ports *record.PortSet) bool {
			return object.HasNamed(ports.Ports(), wanted.Protocol)
		}) {
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
		answer, fits = b.services(wanted, s.priorities(nil))
	}
	if cacheable {
		s.cache.keep(key, answer, fits)
	}
	return answer
}

// lookupTiers answers with the nearest addresses, or with all SRV records, whose priorities are by their tiers (RFC
// 2782).
func (s headless) lookupTiers(q *Question, wanted object.PortName, client Client, tiers []uint16) Answer {
	switch b := s.builder(q, client); q.Type {
	case dns.TypeA:
		return b.nearest(4, tiers)
	case dns.TypeAAAA:
		return b.nearest(16, tiers)
	default:
		answer, _ := b.services(wanted, s.priorities(tiers))
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
