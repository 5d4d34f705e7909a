// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

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

// maxAlways is how many address records fit into any message.
const maxAlways = 4

// prebuilt answers with records made before: as many as fit, and as many of the extra ones.
func (q *Question) prebuilt(answer, extra []dns.RR, client func() Client) Answer {
	if len(answer) == 0 {
		return Answer{Result: Empty}
	}
	if len(answer) <= maxAlways && q.Type != dns.TypeSRV {
		return Answer{Result: Found, Answer: answer}
	}
	room := client().room(q.Name)
	if answer[0].Header().Name != q.Name {
		room -= len(answer[0].Header().Name) + 1 - sizePointer // its first occurrence is not the question's
	}
	fits := 0
	for ; fits < len(answer); fits++ {
		size := recordSize(answer[fits])
		if room < size {
			return Answer{Result: Found, Answer: answer[:fits:fits], Truncated: true}
		}
		room -= size
	}
	fits = 0
	for ; fits < len(extra); fits++ {
		size := recordSize(extra[fits])
		if room < size {
			break
		}
		room -= size
	}
	return Answer{Result: Found, Answer: answer, Extra: extra[:fits:fits]}
}

// recordSize is the size of a record in a message that has its owner before.
func recordSize(rr dns.RR) int {
	switch rr := rr.(type) {
	case *dns.A:
		return sizeA
	case *dns.AAAA:
		return sizeAAAA
	case *dns.SRV:
		return sizeSRV + len(rr.Target) + 1
	default:
		return sizeFixed - sizePointer + dns.Len(rr)
	}
}
