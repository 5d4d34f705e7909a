// SPDX-License-Identifier: Apache-2.0

package record

import "github.com/miekg/dns"

// usualWeight is that of SRV records that have none of their own: no target of a priority is preferred.
const usualWeight = 100

// SetA fills a record in and returns it. The record refers to the octets of the address, which never change.
func SetA(record *dns.A, owner string, ttl uint32, addr []byte) dns.RR {
	record.Hdr = dns.RR_Header{Name: owner, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}
	record.A = addr
	return record
}

// SetAAAA is SetA for IPv6.
func SetAAAA(record *dns.AAAA, owner string, ttl uint32, addr []byte) dns.RR {
	record.Hdr = dns.RR_Header{Name: owner, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: ttl}
	record.AAAA = addr
	return record
}

// SetSRV fills a record in and returns it. Its priority is 0, and its weight that of most records.
func SetSRV(record *dns.SRV, owner string, ttl uint32, target string, port uint16) dns.RR {
	record.Hdr = dns.RR_Header{Name: owner, Rrtype: dns.TypeSRV, Class: dns.ClassINET, Ttl: ttl}
	record.Weight, record.Port, record.Target = usualWeight, port, target
	return record
}

// addressRecord is the record of one address in network order.
func addressRecord(owner string, ttl uint32, addr []byte) dns.RR {
	if len(addr) == 4 {
		return SetA(new(dns.A), owner, ttl, addr)
	}
	return SetAAAA(new(dns.AAAA), owner, ttl, addr)
}

func serviceRecord(owner string, ttl uint32, target string, port uint16) dns.RR {
	return SetSRV(new(dns.SRV), owner, ttl, target, port)
}
