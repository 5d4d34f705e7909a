// SPDX-License-Identifier: Apache-2.0

package object

import (
	"slices"
	"strings"
)

// Hostnames is a packed list of hostnames. Their common prefix is stored once: replicas of a StatefulSet differ in a
// few digits. It is immutable.
type Hostnames struct {
	prefix, rest string
	ends         []uint32 // of each hostname in rest
}

// PackHostnames packs hostnames, of which there is at least one.
func PackHostnames(hosts []string) Hostnames {
	prefix := hosts[0]
	for _, host := range hosts[1:] {
		n := 0
		for n < len(prefix) && n < len(host) && prefix[n] == host[n] {
			n++
		}
		prefix = prefix[:n]
	}
	h := Hostnames{prefix: strings.Clone(prefix), ends: make([]uint32, len(hosts))}
	length := 0
	for i, host := range hosts {
		length += len(host) - len(prefix)
		h.ends[i] = uint32(length)
	}
	var rest strings.Builder
	rest.Grow(length)
	for _, host := range hosts {
		rest.WriteString(host[len(prefix):])
	}
	h.rest = rest.String()
	return h
}

// Equal reports whether both lists are the same.
func (h *Hostnames) Equal(other *Hostnames) bool {
	return h.prefix == other.prefix && h.rest == other.rest && slices.Equal(h.ends, other.ends)
}

// suffix is what follows the prefix in the ith hostname.
func (h *Hostnames) suffix(i int) string {
	start := uint32(0)
	if i > 0 {
		start = h.ends[i-1]
	}
	return h.rest[start:h.ends[i]]
}

// Append appends the ith hostname.
func (h *Hostnames) Append(dst []byte, i int) []byte {
	return append(append(dst, h.prefix...), h.suffix(i)...)
}

// AppendTo appends all hostnames to a list, as parts of one string.
func (h *Hostnames) AppendTo(hosts []string) []string {
	var text strings.Builder
	text.Grow(len(h.ends)*len(h.prefix) + len(h.rest)) // it never moves
	for i := range h.ends {
		start := text.Len()
		text.WriteString(h.prefix)
		text.WriteString(h.suffix(i))
		hosts = append(hosts, text.String()[start:])
	}
	return hosts
}

// Find returns the range of a hostname in a sorted list.
func (h *Hostnames) Find(host string) (from, to int) {
	suffix, ok := strings.CutPrefix(host, h.prefix)
	if !ok {
		return 0, 0
	}
	for to = len(h.ends); from < to; { // the first that is not less
		if middle := int(uint(from+to) / 2); h.suffix(middle) < suffix {
			from = middle + 1
		} else {
			to = middle
		}
	}
	for to = from; to < len(h.ends) && h.suffix(to) == suffix; to++ {
	}
	return from, to
}
