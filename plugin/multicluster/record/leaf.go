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

// A leaf has at most maxLeaf addresses and at least minLeaf, unless it is the last of its block.
const (
	maxLeaf = 128
	minLeaf = 16
)

// leaf is a part of a block: sorted addresses and their hostnames, packed into one piece. Its octets are the addresses
// in network order. If the block is named, these follow: for each hostname where it ends in the text (2 octets), the
// length of the prefix that all hostnames have in common (1 octet), the prefix, and the text of what follows it in each
// of them. A leaf is immutable. The states of a service share leaves that did not change.
type leaf struct {
	octets []byte
	end    int // the number of the block's addresses up to the end of the leaf
}

// entry is an address and its hostname, which is empty if the block is not named.
type entry struct {
	addr netip.Addr
	host string
}

func (e *entry) compare(other *entry) int {
	return cmp.Or(strings.Compare(e.host, other.host), e.addr.Compare(other.addr))
}

// page is an unpacked view of a leaf.
type page struct {
	addrs              []byte
	ends, prefix, rest []byte
	n, size            int
}

// start is the number of the first address of a leaf.
func (b *Block) start(k int) int {
	if k == 0 {
		return 0
	}
	return b.leaves[k-1].end
}

// page is the leaf with that number.
func (b *Block) page(k int) page {
	n := b.leaves[k].end - b.start(k)
	octets := b.leaves[k].octets
	p := page{n: n, size: int(b.Size)}
	p.addrs, octets = octets[:n*p.size], octets[n*p.size:]
	if b.Named {
		p.ends, octets = octets[:2*n], octets[2*n:]
		length := int(octets[0])
		p.prefix, p.rest = octets[1:1+length], octets[1+length:]
	}
	return p
}

// addr is the ith address.
func (p *page) addr(i int) []byte {
	start, end := i*p.size, (i+1)*p.size
	return p.addrs[start:end:end]
}

// suffix is what follows the prefix in the ith hostname.
func (p *page) suffix(i int) []byte {
	start := uint16(0)
	if i > 0 {
		start = binary.LittleEndian.Uint16(p.ends[2*i-2:])
	}
	return p.rest[start:binary.LittleEndian.Uint16(p.ends[2*i:])]
}

// order compares the ith hostname, or the ith address if there are no hostnames, with what is wanted.
func (p *page) order(i int, wanted []byte) int {
	if p.ends == nil {
		return bytes.Compare(p.addr(i), wanted)
	}
	n := min(len(p.prefix), len(wanted))
	if c := bytes.Compare(p.prefix[:n], wanted[:n]); c != 0 {
		return c
	}
	if n < len(p.prefix) {
		return 1
	}
	return bytes.Compare(p.suffix(i), wanted[n:])
}

// search returns the number of the first entry that does not come before what is wanted. The last one does not.
func (p *page) search(wanted []byte) int {
	i, end := 0, p.n-1
	if p.ends == nil {
		for i < end {
			if middle := int(uint(i+end) / 2); bytes.Compare(p.addr(middle), wanted) < 0 {
				i = middle + 1
			} else {
				end = middle
			}
		}
		return i
	}
	suffix, ok := bytes.CutPrefix(wanted, p.prefix)
	if !ok {
		return 0 // all come after it
	}
	for i < end {
		if middle := int(uint(i+end) / 2); bytes.Compare(p.suffix(middle), suffix) < 0 {
			i = middle + 1
		} else {
			end = middle
		}
	}
	return i
}

// compare compares the ith entry with another.
func (p *page) compare(i int, other *entry) int {
	if p.ends != nil {
		if c := p.order(i, []byte(other.host)); c != 0 {
			return c
		}
	}
	addr, _ := netip.AddrFromSlice(p.addr(i))
	return addr.Compare(other.addr)
}

// unpack appends all entries. Their hostnames are parts of one string.
func (p *page) unpack(entries []entry) []entry {
	entries = slices.Grow(entries, p.n)
	var text strings.Builder
	text.Grow(p.n*len(p.prefix) + len(p.rest)) // it never moves
	for i := range p.n {
		var e entry
		e.addr, _ = netip.AddrFromSlice(p.addr(i))
		if p.ends != nil {
			start := text.Len()
			text.Write(p.prefix)
			text.Write(p.suffix(i))
			e.host = text.String()[start:]
		}
		entries = append(entries, e)
	}
	return entries
}

// packLeaf packs entries, of which there are some.
func packLeaf(entries []entry, size int, named bool) []byte {
	length := len(entries) * size
	if !named {
		octets := make([]byte, 0, length)
		for i := range entries {
			octets, _ = entries[i].addr.AppendBinary(octets)
		}
		return octets
	}
	first, last := entries[0].host, entries[len(entries)-1].host
	prefix := 0
	for prefix < min(len(first), len(last)) && first[prefix] == last[prefix] { // they are sorted: all others have it
		prefix++
	}
	length += 2*len(entries) + 1 + prefix
	for i := range entries {
		length += len(entries[i].host) - prefix
	}
	octets := make([]byte, 0, length)
	for i := range entries {
		octets, _ = entries[i].addr.AppendBinary(octets)
	}
	end := 0
	for i := range entries {
		end += len(entries[i].host) - prefix
		octets = binary.LittleEndian.AppendUint16(octets, uint16(end)) // maxLeaf labels take less
	}
	octets = append(append(octets, byte(prefix)), first[:prefix]...)
	for i := range entries {
		octets = append(octets, entries[i].host[prefix:]...)
	}
	return octets
}

// edited returns the block without some of its entries and with others. Both are sorted, and what is removed is in the
// block. Leaves that do not change are shared.
func (b *Block) edited(removed, added []entry) Block {
	after := Block{Class: b.Class, HostOctets: b.HostOctets - hostOctets(removed)}
	after.leaves = make([]leaf, 0, len(b.leaves)+1)
	var buffers [2][2 * maxLeaf]entry
	open, merged := buffers[0][:0], buffers[1][:0] // the entries of leaves that change and are not packed yet
	for k := range b.leaves {
		gone, come, last := removed, added, k == len(b.leaves)-1
		if !last && len(removed)+len(added) > 0 {
			next := b.page(k + 1)
			gone, come = next.preceding(removed), next.preceding(added)
		}
		if len(gone)+len(come)+len(open) == 0 {
			n := b.leaves[k].end - b.start(k)
			after.leaves = append(after.leaves, leaf{b.leaves[k].octets, after.Len() + n})
			continue
		}
		p := b.page(k)
		removed, added = removed[len(gone):], added[len(come):]
		open = p.unpack(open)
		merged = mergeEntries(merged[:0], open, gone, come)
		after.HostOctets += hostOctets(come)
		open, merged = merged, open
		if len(open) >= minLeaf || last {
			after.pack(open)
			open = open[:0]
		}
	}
	return after
}

// preceding are the entries that come before the leaf.
func (p *page) preceding(entries []entry) []entry {
	n := 0
	for n < len(entries) && p.compare(0, &entries[n]) > 0 {
		n++
	}
	return entries[:n]
}

// mergeEntries appends entries without those that are removed, and with those that are added.
func mergeEntries(dst, entries, removed, added []entry) []entry {
	for i := range entries {
		e := &entries[i]
		if len(removed) > 0 && *e == removed[0] {
			removed = removed[1:]
			continue
		}
		for len(added) > 0 && added[0].compare(e) < 0 {
			dst, added = append(dst, added[0]), added[1:]
		}
		dst = append(dst, *e)
	}
	return append(dst, added...)
}

// leavesOf is how many leaves so many entries take.
func leavesOf(entries int) int { return (entries + maxLeaf - 1) / maxLeaf }

// pack appends leaves of the same size with the entries.
func (b *Block) pack(entries []entry) {
	for len(entries) > 0 {
		n := len(entries) / leavesOf(len(entries))
		b.leaves = append(b.leaves, leaf{packLeaf(entries[:n], int(b.Size), b.Named), b.Len() + n})
		entries = entries[n:]
	}
}

// hostOctets is the length of the host labels of the entries.
func hostOctets(entries []entry) (octets int) {
	var label [object.MaxLabel]byte
	for i := range entries {
		if host := entries[i].host; host != "" {
			octets += len(host)
		} else {
			octets += len(appendHostLabel(label[:0], entries[i].addr))
		}
	}
	return octets
}
