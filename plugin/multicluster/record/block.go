// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
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

	leaves []leaf // none is empty
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
		return xClass == yClass && x.equalEntries(&y)
	})
}

// equalEntries reports whether both blocks have the same addresses and hostnames. Most leaves have the same octets.
func (b *Block) equalEntries(other *Block) bool {
	if b.Len() != other.Len() || b.HostOctets != other.HostOctets {
		return false
	}
	var x, y []entry
	for i, j := 0, 0; i < len(b.leaves) || j < len(other.leaves); {
		if len(x) == 0 && len(y) == 0 && b.page(i).n == other.page(j).n {
			if !bytes.Equal(b.leaves[i].octets, other.leaves[j].octets) {
				return false
			}
			i, j = i+1, j+1
			continue
		}
		if len(x) == 0 {
			p := b.page(i)
			x, i = p.unpack(nil), i+1
		}
		if len(y) == 0 {
			p := other.page(j)
			y, j = p.unpack(nil), j+1
		}
		n := min(len(x), len(y))
		if !slices.Equal(x[:n], y[:n]) {
			return false
		}
		x, y = x[n:], y[n:]
	}
	return true
}

// Len is the number of addresses.
func (b *Block) Len() int {
	if len(b.leaves) == 0 {
		return 0
	}
	return b.leaves[len(b.leaves)-1].end
}

// locate returns the leaf of the ith address and its number there.
func (b *Block) locate(i int) (k, in int) {
	if i < b.leaves[0].end { // most blocks have one leaf
		return 0, i
	}
	k, end := 1, len(b.leaves)-1
	for k < end { // the first leaf that ends behind it
		if middle := int(uint(k+end) / 2); b.leaves[middle].end <= i {
			k = middle + 1
		} else {
			end = middle
		}
	}
	return k, i - b.leaves[k-1].end
}

// first is the first entry.
func (b *Block) first() entry {
	addr, _ := netip.AddrFromSlice(b.Addr(0))
	if !b.Named {
		return entry{addr: addr}
	}
	return entry{addr, string(b.AppendHost(nil, 0))}
}

// Addr is the ith address in network order. It must not be changed.
func (b *Block) Addr(i int) []byte {
	k, in := b.locate(i)
	start := in * int(b.Size)
	end := start + int(b.Size)
	return b.leaves[k].octets[start:end:end]
}

// AppendHost appends the label of the ith endpoint.
func (b *Block) AppendHost(dst []byte, i int) []byte {
	if b.Named {
		k, in := b.locate(i)
		p := b.page(k)
		return append(append(dst, p.prefix...), p.suffix(in)...)
	}
	addr, _ := netip.AddrFromSlice(b.Addr(i))
	return appendHostLabel(dst, addr)
}

// Find returns the range of the addresses that have the host name. The label is in lower case; addr is the address
// whose label it is, if any.
func (b *Block) Find(label string, addr netip.Addr) (from, to int) {
	var buffer [object.MaxLabel]byte
	wanted := buffer[:0]
	switch {
	case b.Named && len(label) <= len(buffer):
		wanted = append(wanted, label...)
	case !b.Named && addr.BitLen() == 8*int(b.Size):
		wanted, _ = addr.AppendBinary(wanted)
	default:
		return 0, 0
	}
	k, end := 0, len(b.leaves)
	for k < end { // the first leaf whose last entry does not come before
		middle := int(uint(k+end) / 2)
		if b.endsBefore(middle, wanted) {
			k = middle + 1
		} else {
			end = middle
		}
	}
	if k == len(b.leaves) {
		return 0, 0
	}
	p := b.page(k)
	i := p.search(wanted)
	from = b.start(k) + i
	for to = from; ; i, to = i+1, to+1 { // the addresses of a host may be in several leaves
		if i == p.n {
			if k++; k == len(b.leaves) {
				return from, to
			}
			p, i = b.page(k), 0
		}
		if p.order(i, wanted) != 0 {
			return from, to
		}
	}
}

// endsBefore reports whether the last hostname of a leaf, or its last address, comes before what is wanted.
func (b *Block) endsBefore(k int, wanted []byte) bool {
	l := &b.leaves[k]
	if !b.Named {
		return bytes.Compare(l.octets[len(l.octets)-int(b.Size):], wanted) < 0
	}
	n := l.end - b.start(k)
	ends := l.octets[n*int(b.Size):]
	prefix := ends[2*n+1:][:ends[2*n]]
	common := min(len(prefix), len(wanted))
	if c := bytes.Compare(prefix[:common], wanted[:common]); c != 0 || common < len(prefix) {
		return c < 0
	}
	start := 0
	if n > 1 {
		start = int(binary.LittleEndian.Uint16(ends[2*n-4:]))
	}
	return bytes.Compare(ends[2*n+1+len(prefix)+start:], wanted[common:]) < 0
}
