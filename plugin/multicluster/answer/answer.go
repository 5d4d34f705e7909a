// SPDX-License-Identifier: Apache-2.0

// Package answer answers questions from the record set of a service: which of its records, as many as the client can
// take.
//
// Records may be shared with other answers: they must not be changed. The package is pure.
package answer

import (
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
)

// Question is a question for a service.
type Question struct {
	// Name is the name in question, as it came. Records that are made for the answer have it as their owner.
	Name string
	// Request is what the name asks for in the zone with the number Zone.
	Request name.Request
	Zone    int
	Type    uint16
	// Prefer is the preference for services without one.
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
	// Place is the location of the client. If it is unknown, all endpoints are alike.
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

// Answer has the records for a question. Its slices have no spare capacity.
type Answer struct {
	Result    Result
	Answer    []dns.RR
	Extra     []dns.RR
	Truncated bool
}

// Lookup answers a question for a name of a service. It takes no lock. It calls client only if there may be more
// records than any client can take.
func Lookup(config *record.Config, service *record.Service, q *Question, client func() Client) Answer {
	if !service.Exists {
		return Answer{}
	}
	if service.Headless {
		h := headless{service, config}
		return h.lookup(q, client)
	}
	return lookupClusterSetIP(service, q, client)
}

// Octets of records whose owner is compressed to a pointer (RFC 1035, section 4.1.4). The target of an SRV record is
// never compressed (RFC 2782).
const (
	sizePointer = 2
	sizeFixed   = sizePointer + 10 // type, class, TTL, length of the data
	sizeA       = sizeFixed + 4
	sizeAAAA    = sizeFixed + 16
	sizeSRV     = sizeFixed + 6 // and the target
	maxPointer  = 1<<14 - 1     // what a pointer can point to
	sizeHeader  = 12            // of a message
)

// addressSize is the size of the record of an address of that many octets.
func addressSize(octets uint8) int { return sizeFixed + int(octets) }

// room is how many octets a client has for records behind a question of that name.
func (c Client) room(name string) int {
	return c.Size - c.Reserved - sizeHeader - (len(name) + 1) - 4 // type and class
}

// answerOf is the answer with these records, which have no spare capacity.
func answerOf(answer, extra []dns.RR, truncated bool) Answer {
	if len(answer) == 0 && !truncated {
		return Answer{Result: Empty}
	}
	return Answer{Result: Found, Answer: answer, Extra: extra, Truncated: truncated}
}
