// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// A run is a sequence of addresses of endpoints that have the same part in the records of a headless service. An
// address appears once under one host name; it takes 4 or 16 octets here, and its host name a few more where the
// endpoint has a hostname of its own.
type run struct {
	runClass
	// addrs are packed in network order, sorted by host and then by address.
	addrs []byte
	// prefix is what all hostnames of a named run begin with, text holds the rest of each, one behind the other, and ends
	// where each ends. Replicas of a StatefulSet differ in a few digits.
	prefix, text string
	ends         []uint32
}

// runClass is what the addresses of a run have in common. Classes of one service are compared with ==.
type runClass struct {
	// cluster is the id of the endpoints' cluster. Where it is empty the endpoints have no host names.
	cluster string
	// zone is that of the endpoints; empty where it is not known.
	zone string
	// ports are those of the targets; empty unless lead.
	ports *portSet
	// size is the number of octets of an address: 4 or 16.
	size uint8
	// named tells whether the endpoints have hostnames; others are named by their address.
	named bool
	// inService: the address is one of the service name's.
	inService bool
	// inHost: the address is one of its host name's.
	inHost bool
	// lead: the host name is a target of SRV records. Of the addresses of a host name one leads.
	lead bool
}

// compare orders the classes of one service: by family and by cluster first.
func (c *runClass) compare(other *runClass) int {
	return cmp.Or(
		cmp.Compare(c.size, other.size),
		strings.Compare(c.cluster, other.cluster),
		strings.Compare(c.zone, other.zone),
		compareBools(c.named, other.named),
		compareBools(other.inService, c.inService),
		compareBools(other.inHost, c.inHost),
		compareBools(other.lead, c.lead),
	) // classes that differ in their ports alone come as their first hosts do
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// equalRuns tells whether the runs of two states of a service give the same answers.
func equalRuns(a, b []run) bool {
	var ports, others *portSet // compared last, and equal: most runs of a service have the same
	return slices.EqualFunc(a, b, func(x, y run) bool {
		if x.ports != ports || y.ports != others {
			if !slices.Equal(x.ports.list(), y.ports.list()) {
				return false
			}
			ports, others = x.ports, y.ports
		}
		xClass, yClass := x.runClass, y.runClass
		xClass.ports, yClass.ports = nil, nil
		return xClass == yClass && bytes.Equal(x.addrs, y.addrs) && x.prefix == y.prefix && x.text == y.text &&
			slices.Equal(x.ends, y.ends)
	})
}

// len is the number of addresses.
func (r *run) len() int { return len(r.addrs) / int(r.size) }

// addr is the ith address in network order. It must not be changed.
func (r *run) addr(i int) []byte {
	start := i * int(r.size)
	end := start + int(r.size)
	return r.addrs[start:end:end]
}

// setHosts packs the hostnames of a named run.
func (r *run) setHosts(hosts []string) {
	prefix := commonPrefix(hosts)
	r.prefix = strings.Clone(prefix)
	r.ends = make([]uint32, len(hosts))
	length := 0
	for i, host := range hosts {
		length += len(host) - len(prefix)
		r.ends[i] = uint32(length)
	}
	var text strings.Builder
	text.Grow(length)
	for _, host := range hosts {
		text.WriteString(host[len(prefix):])
	}
	r.text = text.String()
}

// commonPrefix is what all strings begin with.
func commonPrefix(all []string) string {
	prefix := all[0]
	for _, s := range all[1:] {
		n := 0
		for n < len(prefix) && n < len(s) && prefix[n] == s[n] {
			n++
		}
		prefix = prefix[:n]
	}
	return prefix
}

// suffix is what follows the prefix in the ith hostname of a named run.
func (r *run) suffix(i int) string {
	start := uint32(0)
	if i > 0 {
		start = r.ends[i-1]
	}
	return r.text[start:r.ends[i]]
}

// appendHost appends the label of the ith endpoint.
func (r *run) appendHost(dst []byte, i int) []byte {
	if r.named {
		return append(append(dst, r.prefix...), r.suffix(i)...)
	}
	if r.size == 4 {
		return appendHostLabel4(dst, r.addr(i))
	}
	return appendHostLabel(dst, addrOf(r.addr(i)))
}

// appendHostLabel4 appends the label of an IPv4 address.
func appendHostLabel4(dst, addr []byte) []byte {
	for i, octet := range addr {
		if i > 0 {
			dst = append(dst, '-')
		}
		if octet >= 100 {
			dst = append(dst, '0'+octet/100)
		}
		if octet >= 10 {
			dst = append(dst, '0'+octet/10%10)
		}
		dst = append(dst, '0'+octet%10)
	}
	return dst
}

// hostLen is the length of the label of the ith endpoint.
func (r *run) hostLen(i int) int {
	if r.named {
		return len(r.prefix) + len(r.suffix(i))
	}
	if r.size == 4 {
		return hostLen4(r.addr(i))
	}
	var label [maxLabel]byte
	return len(appendHostLabel(label[:0], addrOf(r.addr(i))))
}

// leastHosts is how long all labels together are at least: exactly so long, but for those of IPv6 addresses.
func (r *run) leastHosts() int {
	if r.named {
		return r.len()*len(r.prefix) + len(r.text)
	}
	octets := r.len() // one each
	if r.size == 4 {
		octets = 0
		for i := range r.len() {
			octets += hostLen4(r.addr(i))
		}
	}
	return octets
}

// hostLen4 is the length of the label of an IPv4 address.
func hostLen4(addr []byte) int {
	length := 2*4 - 1 // a digit each, and what joins them
	for _, octet := range addr {
		if octet >= 10 {
			length++
		}
		if octet >= 100 {
			length++
		}
	}
	return length
}

// find returns the range of addresses that have the host name. The label is in lower case; addr is the address whose
// label it is, where it is one.
func (r *run) find(label string, addr netip.Addr) (from, to int) {
	if !r.named {
		return r.findAddr(addr)
	}
	suffix, ok := strings.CutPrefix(label, r.prefix)
	if !ok {
		return 0, 0
	}
	for to = len(r.ends); from < to; { // the first that is not less
		if middle := int(uint(from+to) / 2); r.suffix(middle) < suffix {
			from = middle + 1
		} else {
			to = middle
		}
	}
	for to = from; to < len(r.ends) && r.suffix(to) == suffix; to++ {
	}
	return from, to
}

// findAddr returns the range of one address or none.
func (r *run) findAddr(addr netip.Addr) (from, to int) {
	if addr.BitLen() != 8*int(r.size) {
		return 0, 0
	}
	var octets [16]byte
	want := appendAddr(octets[:0], addr)
	to = r.len()
	for from < to {
		if middle := int(uint(from+to) / 2); bytes.Compare(r.addr(middle), want) < 0 {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from < r.len() && bytes.Equal(r.addr(from), want) {
		return from, from + 1
	}
	return from, from
}

// addrOf reads an address in network order.
func addrOf(octets []byte) netip.Addr {
	addr, _ := netip.AddrFromSlice(octets)
	return addr
}
