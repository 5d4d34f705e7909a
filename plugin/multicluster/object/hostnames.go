// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"slices"
	"strings"
)

// Hostnames is a packed list of hostnames. Their common prefix is stored once: replicas of a StatefulSet differ in a
// few digits. It is immutable.
type Hostnames struct {
	text   string   // the prefix, and what follows it in each hostname
	ends   []uint32 // of each hostname in the text
	prefix uint8    // its length
}

// PackHostnames packs hostnames, of which there is at least one.
func PackHostnames(hosts []string) *Hostnames {
	prefix := hosts[0]
	for _, host := range hosts[1:] {
		n := 0
		for n < len(prefix) && n < len(host) && prefix[n] == host[n] {
			n++
		}
		prefix = prefix[:n]
	}
	h := &Hostnames{prefix: uint8(len(prefix)), ends: make([]uint32, len(hosts))}
	length := len(prefix)
	for i, host := range hosts {
		length += len(host) - len(prefix)
		h.ends[i] = uint32(length)
	}
	var text strings.Builder
	text.Grow(length)
	text.WriteString(prefix)
	for _, host := range hosts {
		text.WriteString(host[len(prefix):])
	}
	h.text = text.String()
	return h
}

// Equal reports whether both lists are the same. Either may be nil.
func (h *Hostnames) Equal(other *Hostnames) bool {
	if h == nil || other == nil {
		return h == other
	}
	return h.prefix == other.prefix && h.text == other.text && slices.Equal(h.ends, other.ends)
}

// suffix is what follows the prefix in the ith hostname.
func (h *Hostnames) suffix(i int) string {
	start := uint32(h.prefix)
	if i > 0 {
		start = h.ends[i-1]
	}
	return h.text[start:h.ends[i]]
}

// Append appends the ith hostname.
func (h *Hostnames) Append(dst []byte, i int) []byte {
	return append(append(dst, h.text[:h.prefix]...), h.suffix(i)...)
}

// Compare compares the ith hostname with another.
func (h *Hostnames) Compare(i int, other string) int {
	n := min(int(h.prefix), len(other))
	if c := strings.Compare(h.text[:n], other[:n]); c != 0 || n < int(h.prefix) {
		return cmp.Or(c, 1)
	}
	return strings.Compare(h.suffix(i), other[n:])
}
