// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// Question is a question for a service.
type Question struct {
	// Name is the name in question, as it came. Records that are made for the answer have it as their owner.
	Name string
	// Request is what the name asks for in the zone with the number Zone.
	Request Request
	Zone    int
	Type    uint16
	// Prefer is the preference for services without one.
	Prefer object.Preference
	// Max is the greatest number of records in the answer, or 0 for all that fit.
	Max int
}

// Client is what a client can take.
type Client struct {
	// Size is the number of octets that the message may have, without an OPT record and a signature.
	Size int
	// Point selects the records if not all are taken. Clients with many different points get all records equally often.
	Point uint64
	// Place is the location of the client. If it is unknown, all endpoints are alike.
	Place object.Place
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

// Answer has the records for a question. They may be shared with other answers and must not be changed. Its slices have
// no spare capacity.
type Answer struct {
	Result    Result
	Answer    []dns.RR
	Extra     []dns.RR
	Truncated bool
}

// lookup answers a question for a name of the service. It calls client only if there may be more records than any client
// can take.
func (s *Service) lookup(config *Config, q *Question, client func() Client) Answer {
	switch {
	case !s.Exists:
		return Answer{}
	case s.Import.Headless:
		return headless{s, config}.lookup(q, client)
	default:
		return s.lookupClusterSetIP(config, q, client)
	}
}

// Octets of records whose owner is compressed to a pointer (RFC 1035, section 4.1.4). The target of an SRV record is
// never compressed (RFC 2782).
const (
	sizeHeader  = 12 // of a message
	sizePointer = 2
	sizeFixed   = sizePointer + 10 // type, class, TTL, length of the data
	sizeSRV     = sizeFixed + 6    // and the target
	maxPointer  = 1<<14 - 1        // what a pointer can point to
)

// addressSize is the size of the record of an address of that many octets.
func addressSize(octets uint8) int { return sizeFixed + int(octets) }

// room is how many octets a client has for records behind a question of that name.
func (c Client) room(name string) int {
	return c.Size - sizeHeader - (len(name) + 1) - 4 // type and class
}

// answerOf is the answer with these records, which have no spare capacity.
func answerOf(answer, extra []dns.RR, truncated bool) Answer {
	if len(answer) == 0 && !truncated {
		return Answer{Result: Empty}
	}
	return Answer{Result: Found, Answer: answer, Extra: extra, Truncated: truncated}
}

// portName reads labels of a query, in any case and without their underscores. ok is false if no port can have them.
func portName(port, protocol string) (wanted object.PortName, ok bool) {
	for p := object.TCP; p <= object.SCTP; p++ {
		if strings.EqualFold(p.String(), protocol) {
			return object.PortName{Name: strings.ToLower(port), Protocol: p}, true
		}
	}
	return object.PortName{}, false
}

// headless answers for a headless service that exists.
type headless struct {
	*Service
	config *Config
}

func (s headless) lookup(q *Question, client func() Client) Answer {
	switch q.Request.Kind {
	case KindService:
		return s.lookupService(q, client)
	case KindZone:
		return s.lookupZone(*q, client)
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
func (s headless) lookupService(q *Question, client func() Client) Answer {
	switch q.Type {
	case dns.TypeA:
		return s.addresses(q, 4, client())
	case dns.TypeAAAA:
		return s.addresses(q, 16, client())
	case dns.TypeSRV:
		return s.targets(q, object.PortName{}, client())
	}
	return Answer{Result: Empty}
}

// lookupZone answers for a topology zone, or a name above one. Any zone exists.
func (s headless) lookupZone(q Question, client func() Client) Answer {
	if q.Request.Zone == "" {
		return Answer{Result: Empty}
	}
	answer := s.lookupService(&q, client)
	if answer.Result == Empty && q.Request.Prefers {
		q.Request.Zone = ""
		return s.lookupService(&q, client)
	}
	return answer
}

// anyPorts reports whether the ports of some SRV targets are so.
func (s headless) anyPorts(are func(*PortSet) bool) bool {
	return slices.ContainsFunc(s.Blocks, func(b Block) bool { return b.Ports != nil && are(b.Ports) })
}

// lookupCluster finds out if host names end in these labels: a cluster id, or the last label of one.
func (s headless) lookupCluster(labels string) Answer {
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
func (s headless) lookupHost(q *Question, client func() Client) Answer {
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
	return q.addresses(s.config.TTL, uint8(len(found[0])), len(found), at, client)
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
func (s headless) parts(q *Question, client *Client, ports func(*Block) []object.Port) []part {
	prefer := cmp.Or(s.Import.Prefer, q.Prefer)
	near := prefer > object.PreferNone && client.Place.Known()
	parts := make([]part, 0, len(s.Blocks))
	for i := range s.Blocks {
		p := part{Block: &s.Blocks[i]}
		zone := q.Request.Zone
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

// limit is how many of n records may be taken.
func (q *Question) limit(n int) int {
	if q.Max > 0 {
		return min(n, q.Max)
	}
	return n
}

// addresses answers with the nearest addresses of the service name that have that many octets. A client with one family
// gets addresses also if those of the other one are nearer.
func (s headless) addresses(q *Question, size uint8, client Client) Answer {
	parts, n := first(s.parts(q, &client, func(b *Block) []object.Port {
		if b.InService && b.Size == size {
			return oneRecord
		}
		return nil
	}))
	limit := q.limit(n)
	count := max(0, min(limit, client.room(q.Name)/addressSize(size)))
	if count == n {
		client.Point = 0 // all, in their order
	}
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

// maxAlways is how many address records fit into any message.
const maxAlways = 4

// asksFor reports whether the question is for addresses of so many octets.
func (q *Question) asksFor(size uint8) bool {
	return q.Type == dns.TypeA && size == 4 || q.Type == dns.TypeAAAA && size == 16
}

// addresses answers with n addresses of so many octets, as many as fit.
func (q *Question) addresses(
	ttl uint32, size uint8, n int, addr func(int) []byte, client func() Client,
) Answer {
	count := n
	if count > maxAlways {
		count = max(0, min(count, client().room(q.Name)/addressSize(size)))
	}
	out := newAddressList(count, size)
	for i := range count {
		out.add(q.Name, ttl, addr(i))
	}
	return answerOf(out.records, nil, count < n)
}

// addressList makes address records of one family in two pieces.
type addressList struct {
	records []dns.RR
	a       []dns.A
	aaaa    []dns.AAAA
}

func newAddressList(count int, size uint8) addressList {
	l := addressList{records: make([]dns.RR, 0, count)}
	if size == 4 {
		l.a = make([]dns.A, count)
	} else {
		l.aaaa = make([]dns.AAAA, count)
	}
	return l
}

func (l *addressList) add(owner string, ttl uint32, addr []byte) {
	if i := len(l.records); len(addr) == 4 {
		l.records = append(l.records, setA(&l.a[i], owner, ttl, addr))
	} else {
		l.records = append(l.records, setAAAA(&l.aaaa[i], owner, ttl, addr))
	}
}
