// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// Block is a packed list of addresses of endpoints that have the same part in the records of a headless service, sorted
// by hostname and then by address. An address appears once under one host name. It takes 4 or 16 octets, and its
// hostname, if any, a few more. It is immutable.
type Block struct {
	Class
	// HostOctets is the length of the host labels of all addresses.
	HostOctets int

	addrs []byte            // in network order, one behind the other; at least one
	hosts *object.Hostnames // of the addresses; nil unless the block is Named
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

// compare orders the classes of one service: by family and by cluster first. Classes that differ in their ports alone
// come as their first hosts do.
func (c *Class) compare(other *Class) int {
	return cmp.Or(cmp.Compare(c.Size, other.Size), strings.Compare(c.Cluster, other.Cluster),
		strings.Compare(c.Zone, other.Zone), compareBools(c.Named, other.Named),
		compareBools(other.InService, c.InService), compareBools(other.InHost, c.InHost),
		compareBools(other.Target, c.Target), cmp.Compare(c.Priority, other.Priority),
		cmp.Compare(c.Weight, other.Weight))
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

// equalBlocks reports whether the blocks of two states of a service give the same answers.
func equalBlocks(a, b []Block) bool {
	var ports, others *PortSet // compared last, and equal: most blocks of a service have the same
	return slices.EqualFunc(a, b, func(x, y Block) bool {
		if x.Ports != y.Ports && (x.Ports != ports || y.Ports != others) {
			if !slices.Equal(x.Ports.Ports(), y.Ports.Ports()) {
				return false
			}
			ports, others = x.Ports, y.Ports
		}
		xClass, yClass := x.Class, y.Class
		xClass.Ports, yClass.Ports = nil, nil
		return xClass == yClass && bytes.Equal(x.addrs, y.addrs) && (!x.Named || x.hosts.Equal(y.hosts))
	})
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
	if !b.Named && addr.BitLen() != 8*int(b.Size) {
		return 0, 0
	}
	var octets [16]byte
	wanted, _ := addr.AppendBinary(octets[:0])
	order := func(i int) int {
		if b.Named {
			return b.hosts.Compare(i, label)
		}
		return bytes.Compare(b.Addr(i), wanted)
	}
	from = sort.Search(b.Len(), func(i int) bool { return order(i) >= 0 })
	for to = from; to < b.Len() && order(to) == 0; to++ {
	}
	return from, to
}

// compareFirst orders blocks by their first hosts.
func (b *Block) compareFirst(other *Block) int {
	var label, otherLabel [object.MaxLabel]byte
	if b.Named && other.Named {
		if c := bytes.Compare(b.hosts.Append(label[:0], 0), other.hosts.Append(otherLabel[:0], 0)); c != 0 {
			return c
		}
	}
	return bytes.Compare(b.Addr(0), other.Addr(0))
}
