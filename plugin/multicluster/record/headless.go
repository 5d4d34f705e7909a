// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// lookupTopologyZone answers for the name of a topology zone, or for a name above it. Every topology zone exists.
func (s *Service) lookupTopologyZone(q *Question) Result {
	if q.Request.TopologyZone == "" {
		return Empty
	}
	result := s.lookupService(q)
	if result == Empty && q.Request.Prefers {
		q.Request.TopologyZone = ""
		return s.lookupService(q)
	}
	return result
}

// lookupCluster reports whether host names end in these labels: a cluster id, or its last label.
func (s *Service) lookupCluster(labels string) Result {
	for i := range s.Blocks {
		b := &s.Blocks[i]
		_, last, two := strings.Cut(b.Cluster, ".")
		if b.InHost && (b.Cluster == labels || two && last == labels) {
			return Empty
		}
	}
	return NotExist
}

// lookupHost answers for a host name.
func (s *Service) lookupHost(q *Question) Result {
	addr := parseHostLabel(q.Request.Host)
	exists := false
	var found [][]byte
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if !b.InHost || b.Cluster != q.Request.Cluster {
			continue
		}
		from, to := b.Find(q.Request.Host, addr)
		exists = exists || from < to
		for ; from < to && q.asksFor(b.Size); from++ {
			found = append(found, b.Addr(from))
		}
	}
	switch {
	case !exists:
		return s.lookupCluster(q.Request.Prefix)
	case len(found) == 0:
		return Empty
	}
	at := func(i int) []byte { return found[i] }
	return s.addresses(q, uint8(len(found[0])), len(found), at)
}

// part is a block in an answer.
type part struct {
	*Block
	ports    []Port // of the SRV records of each endpoint
	priority uint16
}

// parts returns the blocks that have records for the question: addresses of the service name or, for SRV, ports with the
// label. They are sorted by the endpoints' own priority (only for SRV, RFC 2782), then by distance from the client.
func (s *Service) parts(q *Question, label string) []part {
	prefer := cmp.Or(s.Import.Prefer, q.Prefer)
	near := prefer > PreferNone && s.config.Cluster != ""
	parts, sorted := make([]part, 0, len(s.Blocks)), true
	for i := range s.Blocks {
		p := part{Block: &s.Blocks[i]}
		found := p.InService && q.asksFor(p.Size)
		if q.Type == dns.TypeSRV && p.Target {
			p.ports, p.priority = labeled(p.Ports.ports, label), uint16(p.Priority)
			found = len(p.ports) > 0
		}
		zone := q.Request.TopologyZone
		if !found || zone != "" && !strings.EqualFold(zone, p.Zone) {
			continue
		}
		if near {
			p.priority = p.priority*tiers + tier(prefer, q.Client.Zone, p.Cluster == s.config.Cluster, p.Zone)
		}
		parts = append(parts, p)
		sorted = sorted && parts[max(0, len(parts)-2)].priority <= p.priority
	}
	if !sorted {
		slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.priority, b.priority) })
	}
	return parts
}

// first returns the leading parts that have the same priority, and the number of their endpoints.
func first(parts []part) (same []part, endpoints int) {
	for i := range parts {
		if parts[i].priority != parts[0].priority {
			return parts[:i], endpoints
		}
		endpoints += parts[i].Len()
	}
	return parts, endpoints
}

// each yields the endpoints of parts by priority until yield returns false. Within a priority it starts at the client's
// point and wraps around.
func each(parts []part, point uint64, yield func(p *part, entry int) bool) {
	for len(parts) > 0 {
		same, n := first(parts)
		start := int(point % uint64(n))
		for _, round := range [...][2]int{{start, n}, {0, start}} {
			before := 0
			for i := range same {
				p := &same[i]
				end := min(round[1]-before, p.Len())
				for at := max(round[0]-before, 0); at < end; at++ {
					if !yield(p, at) {
						return
					}
				}
				before += p.Len()
			}
		}
		parts = parts[len(same):]
	}
}

// nearest answers with the nearest addresses of the service name. A client that asks for one family gets addresses even
// if the addresses of the other family are nearer.
func (s *Service) nearest(q *Question) Result {
	parts, n := first(s.parts(q, ""))
	if n == 0 {
		return Empty
	}
	limit := min(n, cmp.Or(q.Max, n))
	count := max(0, min(limit, q.room()/addressSize(parts[0].Size)))
	out := newAddressList(count)
	each(parts, q.Client.Point, func(p *part, entry int) bool {
		if len(out.records) == count {
			return false
		}
		out.add(q.Name, s.config.TTL, p.Addr(entry))
		return true
	})
	return q.reply(out.records, nil, count < limit)
}
