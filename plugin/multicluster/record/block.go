// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// Block is a packed list of addresses of endpoints that have the same part in the records of a headless service. An
// address appears once under one host name. It takes 4 or 16 octets, and its hostname, if any, a few more. It is
// immutable.
type Block struct {
	Class
	// HostOctets is the length of the host labels of all addresses.
	HostOctets int

	// addrs are packed in network order, sorted by host and then by address.
	addrs []byte
	hosts object.Hostnames // if Named
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
}

// compare orders the classes of one service: by family and by cluster first. Classes that differ in their ports alone
// come as their first hosts do.
func (c *Class) compare(other *Class) int {
	return cmp.Or(cmp.Compare(c.Size, other.Size), strings.Compare(c.Cluster, other.Cluster),
		strings.Compare(c.Zone, other.Zone), compareBools(c.Named, other.Named),
		compareBools(other.InService, c.InService), compareBools(other.InHost, c.InHost),
		compareBools(other.Target, c.Target))
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
		if x.Ports != ports || y.Ports != others {
			if !slices.Equal(x.Ports.Ports(), y.Ports.Ports()) {
				return false
			}
			ports, others = x.Ports, y.Ports
		}
		xClass, yClass := x.Class, y.Class
		xClass.Ports, yClass.Ports = nil, nil
		return xClass == yClass && bytes.Equal(x.addrs, y.addrs) && x.hosts.Equal(&y.hosts)
	})
}

// Len is the number of addresses.
func (b *Block) Len() int { return len(b.addrs) / int(b.Size) }

// Addr is the ith address in network order. It must not be changed.
func (b *Block) Addr(i int) []byte {
	start := i * int(b.Size)
	end := start + int(b.Size)
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
	if b.Named {
		return b.hosts.Find(label)
	}
	if addr.BitLen() != 8*int(b.Size) {
		return 0, 0
	}
	var octets [16]byte
	want, _ := addr.AppendBinary(octets[:0])
	to = b.Len()
	for from < to {
		if middle := int(uint(from+to) / 2); bytes.Compare(b.Addr(middle), want) < 0 {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from < b.Len() && bytes.Equal(b.Addr(from), want) {
		return from, from + 1
	}
	return from, from
}
