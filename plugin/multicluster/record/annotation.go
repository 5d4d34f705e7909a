// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// AnnotationSRV on an EndpointSlice of a headless import sets the SRV records of its endpoints, for example
//
//	priority=2 weight=27 terminating=0,3
//
// Serving and terminating endpoints of the slice are listed even while other endpoints are ready, except the endpoints
// with the indices after terminating: these are listed only if no endpoint is ready. Each part is optional.
const AnnotationSRV = "clusterset-dns.github.io/srv"

// maxIndex is the index of the last endpoint of a slice with the 1000 endpoints that the API allows.
const maxIndex = 999

// parseSRV parses the value of AnnotationSRV: the priority and weight of the SRV records, 0 if missing, and the sorted
// indices after terminating. ok is false if the value is not valid.
func parseSRV(text string) (priority uint8, weight uint16, terminating []int, ok bool) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, " ") {
		key, value, _ := strings.Cut(part, "=")
		valid := !seen[key]
		seen[key] = true
		var n uint64
		var err error
		switch key {
		case "priority":
			n, err = strconv.ParseUint(value, 10, 8)
			priority = uint8(n)
		case "weight":
			n, err = strconv.ParseUint(value, 10, 16)
			weight = uint16(n)
			valid = valid && n > 0
		case "terminating":
			last := -1
			for index := range strings.SplitSeq(value, ",") {
				n, err = strconv.ParseUint(index, 10, 16)
				valid = valid && err == nil && n <= maxIndex && int(n) > last
				last = int(n)
				terminating = append(terminating, last)
			}
		default:
			valid = false
		}
		if !valid || err != nil {
			return 0, 0, nil, false
		}
	}
	return priority, weight, terminating, true
}

// readSRV applies the annotation and returns which endpoints have the condition waiting: nil if none has.
func (e *Endpoints) readSRV(text string) (waits func(i int) bool) {
	if text == "" {
		return nil
	}
	priority, weight, terminating, ok := parseSRV(text)
	if !ok {
		e.skips.Add(InvalidSRV, 1)
		return nil
	}
	e.Priority, e.Weight = priority, cmp.Or(weight, usualWeight)
	return func(i int) bool {
		_, found := slices.BinarySearch(terminating, i)
		return !found
	}
}
