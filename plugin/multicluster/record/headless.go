// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// lookupHeadless answers for a headless service.
func (s *Service) lookupHeadless(q *Question, client func() Client) Answer {
	switch q.Request.Kind {
	case KindService:
		return s.lookupService(q, client)
	case KindTopologyZone:
		return s.lookupTopologyZone(*q, client)
	case KindPort:
		wanted, ok := portName(q.Request.Port, q.Request.Protocol)
		switch {
		case !ok || !s.anyPorts(func(ports *PortSet) bool { return len(ports.Named(wanted)) > 0 }):
		case q.Type == dns.TypeSRV:
			return s.targets(q, wanted, client())
		default:
			return Answer{Result: Empty}
		}
	case KindProtocol:
		wanted, ok := portName("", q.Request.Protocol)
		if ok && s.anyPorts(func(set *PortSet) bool { return object.HasNamed(set.ports, wanted.Protocol) }) {
			return Answer{Result: Empty}
		}
	case KindHost:
		return s.lookupHost(q, client)
	case KindCluster:
		return s.lookupCluster(q.Request.Cluster)
	}
	return Answer{}
}

// lookupService answers for the name of the service, with the endpoints in the topology zone if there is one.
func (s *Service) lookupService(q *Question, client func() Client) Answer {
	switch q.Type {
	case dns.TypeA:
		return s.nearest(q, 4, client())
	case dns.TypeAAAA:
		return s.nearest(q, 16, client())
	case dns.TypeSRV:
		return s.targets(q, object.PortName{}, client())
	}
	return Answer{Result: Empty}
}

// lookupTopologyZone answers for a topology zone, or a name above one. Any zone exists.
func (s *Service) lookupTopologyZone(q Question, client func() Client) Answer {
	if q.Request.TopologyZone == "" {
		return Answer{Result: Empty}
	}
	answer := s.lookupService(&q, client)
	if answer.Result == Empty && q.Request.Prefers {
		q.Request.TopologyZone = ""
		return s.lookupService(&q, client)
	}
	return answer
}

// anyPorts reports whether the ports of some SRV targets are so.
func (s *Service) anyPorts(are func(*PortSet) bool) bool {
	return slices.ContainsFunc(s.Blocks, func(b Block) bool { return b.Ports != nil && are(b.Ports) })
}

// lookupCluster finds out if host names end in these labels: a cluster id, or the last label of one.
func (s *Service) lookupCluster(labels string) Answer {
	for i := range s.Blocks {
		b := &s.Blocks[i]
		_, last, two := strings.Cut(b.Cluster, ".")
		if b.InHost && (strings.EqualFold(b.Cluster, labels) || two && strings.EqualFold(last, labels)) {
			return Answer{Result: Empty}
		}
	}
	return Answer{}
}

// lookupHost answers for a host name.
func (s *Service) lookupHost(q *Question, client func() Client) Answer {
	label := strings.ToLower(q.Request.Host)
	addr := ParseHostLabel(label)
	exists := false
	var found [][]byte
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if !b.InHost || !strings.EqualFold(b.Cluster, q.Request.Cluster) {
			continue
		}
		from, to := b.Find(label, addr)
		exists = exists || from < to
		for ; from < to && q.asksFor(b.Size); from++ {
			found = append(found, b.Addr(from))
		}
	}
	switch {
	case !exists:
		return s.lookupCluster(q.Request.Host + "." + q.Request.Cluster)
	case len(found) == 0:
		return Answer{Result: Empty}
	}
	at := func(i int) []byte { return found[i] }
	return s.addresses(q, uint8(len(found[0])), len(found), at, client)
}

// part is a block as an answer takes it: each of its endpoints once for each port.
type part struct {
	*Block
	ports    []object.Port
	priority uint16
}

// records is their number.
func (p *part) records() int { return p.Len() * len(p.ports) }

// oneRecord stands for the port of an address record.
var oneRecord = make([]object.Port, 1)

// parts are the blocks with ports to take, sorted by priority: that of the endpoints themselves if it counts, and then
// by how near they are to the client (RFC 2782).
func (s *Service) parts(q *Question, client *Client, ports func(*Block) []object.Port) []part {
	prefer := cmp.Or(s.Import.Prefer, q.Prefer)
	near := prefer > object.PreferNone && client.Place.Known()
	parts := make([]part, 0, len(s.Blocks))
	for i := range s.Blocks {
		p := part{Block: &s.Blocks[i]}
		zone := q.Request.TopologyZone
		if p.ports = ports(p.Block); len(p.ports) == 0 || zone != "" && !strings.EqualFold(zone, p.Zone) {
			continue
		}
		if q.Type == dns.TypeSRV {
			p.priority = uint16(p.Priority)
		}
		if near {
			p.priority = p.priority*object.Tiers + client.Place.Tier(prefer, p.Cluster, p.Zone)
		}
		parts = append(parts, p)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.priority, b.priority) })
	return parts
}

// first are the parts with the priority of the first one, and the number of their records.
func first(parts []part) (same []part, records int) {
	for i := range parts {
		if parts[i].priority != parts[0].priority {
			return parts[:i], records
		}
		records += parts[i].records()
	}
	return parts, records
}

// each yields the records of parts until yield returns false: by priority, and those of one priority from the client's
// point on, and around.
func each(parts []part, point uint64, yield func(p *part, entry int, port *object.Port) bool) {
	for len(parts) > 0 {
		same, n := first(parts)
		start := int(point % uint64(n))
		for _, round := range [...][2]int{{start, n}, {0, start}} {
			before := 0
			for i := range same {
				p := &same[i]
				end := min(round[1]-before, p.records())
				for at := max(round[0]-before, 0); at < end; at++ {
					if !yield(p, at/len(p.ports), &p.ports[at%len(p.ports)]) {
						return
					}
				}
				before += p.records()
			}
		}
		parts = parts[len(same):]
	}
}

// nearest answers with the nearest addresses of the service name that have that many octets. A client with one family
// gets addresses also if those of the other one are nearer.
func (s *Service) nearest(q *Question, size uint8, client Client) Answer {
	parts, n := first(s.parts(q, &client, func(b *Block) []object.Port {
		if b.InService && b.Size == size {
			return oneRecord
		}
		return nil
	}))
	limit := q.limit(n)
	count := max(0, min(limit, client.room(q.Name)/addressSize(size)))
	out := newAddressList(count, size)
	each(parts, client.Point, func(p *part, entry int, _ *object.Port) bool {
		if len(out.records) == count {
			return false
		}
		out.add(q.Name, s.config.TTL, p.Addr(entry))
		return true
	})
	return answerOf(out.records, nil, count < limit)
}
