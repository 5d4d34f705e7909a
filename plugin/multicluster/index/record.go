// SPDX-License-Identifier: Apache-2.0

package index

import "github.com/miekg/dns"

// weight is that of all SRV records: of the targets of one priority none is preferred.
const weight = 100

// Octets of records whose owner is compressed to a pointer (RFC 1035, section 4.1.4). The target of an SRV record is
// never compressed (RFC 2782).
const (
	sizePointer = 2
	sizeFixed   = sizePointer + 10    // type, class, TTL, length of the data
	sizeA       = sizeFixed + 4       //
	sizeAAAA    = sizeFixed + 16      //
	sizeSRV     = sizeFixed + 6       // and the target
	maxPointer  = 1<<14 - 1           // what a pointer can point to
	sizeHeader  = 12                  // of a message
	sizeSuffix  = len(".") + len(".") // around the cluster id in a target
)

// addressSize is the size of the record of an address of that many octets.
func addressSize(octets uint8) int { return sizeFixed + int(octets) }

// setA and setAAAA fill a record in and return it. It refers to the octets of the address, which never change.
func setA(record *dns.A, owner string, ttl uint32, addr []byte) dns.RR {
	record.Hdr = dns.RR_Header{Name: owner, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}
	record.A = addr
	return record
}

func setAAAA(record *dns.AAAA, owner string, ttl uint32, addr []byte) dns.RR {
	record.Hdr = dns.RR_Header{Name: owner, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: ttl}
	record.AAAA = addr
	return record
}

// addressRecord is the record of one address in network order.
func addressRecord(owner string, ttl uint32, addr []byte) dns.RR {
	if len(addr) == 4 {
		return setA(new(dns.A), owner, ttl, addr)
	}
	return setAAAA(new(dns.AAAA), owner, ttl, addr)
}

func setSRV(record *dns.SRV, owner string, ttl uint32, target string, port uint16) {
	record.Hdr = dns.RR_Header{Name: owner, Rrtype: dns.TypeSRV, Class: dns.ClassINET, Ttl: ttl}
	record.Weight, record.Port, record.Target = weight, port, target
}

// serviceRecord is one SRV record.
func serviceRecord(owner string, ttl uint32, target string, port uint16) dns.RR {
	record := new(dns.SRV)
	setSRV(record, owner, ttl, target, port)
	return record
}
