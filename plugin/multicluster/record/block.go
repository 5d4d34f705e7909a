// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"net/netip"
	"sort"
	"strings"
)

// Block is a packed list of addresses of endpoints of one class. An address takes 4 or 16 octets, and its hostname, if any, a
// few more. It is immutable.
type Block struct {
	Class

	addrs []byte     // in network order, one behind the other; at least one in a service
	hosts *hostnames // of the addresses; nil if none has one
}

// Class is what the addresses of a block have in common. Classes of one service are compared with ==.
type Class struct {
	// Cluster is the id of the endpoints' cluster. If it is empty, the endpoints have no host names.
	Cluster string
	// Zone is that of the endpoints; empty if unknown.
	Zone string
	// Ports are those of the targets; nil unless Target.
	Ports *PortSet
	// Size is the number of octets of an address: 4 or 16.
	Size uint8
	// Named reports whether the endpoints have hostnames. Others are named by their address.
	Named bool
	// InService: the service name has the addresses.
	InService bool
	// InHost: the host names have the addresses.
	InHost bool
	// Target: the host names are targets of SRV records. Of the addresses of a host name one is in such a block.
	Target bool
	// Priority and Weight are those of these records; 0 unless Target.
	Priority uint8
	Weight   uint16
}

// Len is the number of addresses.
func (b *Block) Len() int { return len(b.addrs) / int(b.Size) }

// Addr is the ith address in network order. It must not be changed.
func (b *Block) Addr(i int) []byte {
	start, end := i*int(b.Size), (i+1)*int(b.Size)
	return b.addrs[start:end:end]
}

// AppendHost appends the label of the ith endpoint.
func (b *Block) AppendHost(dst []byte, i int) []byte {
	if b.Named {
		return b.hosts.Append(dst, i)
	}
	addr, _ := netip.AddrFromSlice(b.Addr(i))
	return appendHostLabel(dst, addr)
}

// Find returns the range of the addresses that have the host name. The label is in lower case; addr is the address
// whose label it is, if any.
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
