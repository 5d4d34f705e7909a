// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"net/netip"
	"sort"
	"strings"
)

// Block is an immutable, packed list of endpoint addresses of one class. An address takes 4 or 16 octets, and a
// hostname a few more.
type Block struct {
	Class

	addrs []byte     // in network order, concatenated; at least one in a service
	hosts *hostnames // of the addresses; nil if no address has a hostname
}

// Class has the properties that all addresses of a block share. Classes of one service are compared with ==.
type Class struct {
	// Cluster is the cluster id of the endpoints. If it is empty, the endpoints have no host names.
	Cluster string
	// Zone is the topology zone of the endpoints; empty if unknown.
	Zone string
	// Ports are the ports of the SRV targets; nil unless Target.
	Ports *PortSet
	// Size is the number of octets of an address: 4 or 16.
	Size uint8
	// Named reports whether the endpoints have hostnames. Otherwise their addresses give the host names.
	Named bool
	// InService: the service name has the addresses.
	InService bool
	// InHost: the host names have the addresses.
	InHost bool
	// Target: the host names are targets of SRV records. Only one address of a host name is in a block with Target set.
	Target bool
	// Priority and Weight are set in these SRV records; 0 unless Target.
	Priority uint8
	Weight   uint16
}

// Len returns the number of addresses.
func (b *Block) Len() int { return len(b.addrs) / int(b.Size) }

// Addr returns the ith address in network order. It must not be changed.
func (b *Block) Addr(i int) []byte {
	start, end := i*int(b.Size), (i+1)*int(b.Size)
	return b.addrs[start:end:end]
}

// AppendHost appends the host label of the ith endpoint.
func (b *Block) AppendHost(dst []byte, i int) []byte {
	if b.Named {
		return b.hosts.Append(dst, i)
	}
	addr, _ := netip.AddrFromSlice(b.Addr(i))
	return appendHostLabel(dst, addr)
}

// Find returns the range of the addresses that have the host name. The label is in lower case; addr is the address that
// the label encodes, or the zero Addr.
func (b *Block) Find(label string, addr netip.Addr) (from, to int) {
	rest, ok := "", addr.BitLen() == 8*int(b.Size)
	if b.Named {
		rest, ok = strings.CutPrefix(label, b.hosts.text[:b.hosts.prefix])
	}
	if !ok {
		return 0, 0
	}
	var octets [16]byte
	wanted, _ := addr.AppendBinary(octets[:0])
	order := func(i int) int {
		if b.Named {
			return strings.Compare(b.hosts.suffix(i), rest)
		}
		return bytes.Compare(b.Addr(i), wanted)
	}
	from = sort.Search(b.Len(), func(i int) bool { return order(i) >= 0 })
	for to = from; to < b.Len() && order(to) == 0; to++ {
	}
	return from, to
}
