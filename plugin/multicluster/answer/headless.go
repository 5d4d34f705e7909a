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

// lookupEndpoints answers with records of any number of endpoints: with the nearest addresses, or with all SRV records
// of the ports that are asked for, whose priorities are by their tiers (RFC 2782).
func (s headless) lookupEndpoints(q *Question, wanted object.PortName, client Client) Answer {
	b, tiers := s.builder(q, client), s.tiers(q, client.Place)
	if q.Type == dns.TypeSRV {
		return b.services(wanted, s.priorities(tiers))
	}
	size := uint8(4)
	if q.Type == dns.TypeAAAA {
		size = 16
	}
	if tiers != nil {
		return b.nearest(size, tiers)
	}
	return b.addresses(size)
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
