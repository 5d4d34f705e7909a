// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// AnnotationSRV on an EndpointSlice of a headless import says how its endpoints come in SRV answers, as in
//
//	priority=2 weight=27 terminating=0,3
//
// Endpoints of the slice that are serving and terminating are listed also while others are ready, except those with the
// indices after terminating: they only wait for endpoints that come before. Each part may be missing.
const AnnotationSRV = "clusterset-dns.github.io/srv"

// maxIndex is that of the last endpoint of a slice, by the limit of its API.
const maxIndex = 999

// parseSRV reads the value of AnnotationSRV: priority and weight of the records of all endpoints, 0 if they are missing, and
// the sorted indices of endpoints that do not wait. ok is false if it is not valid.
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

// readSRV reads the annotation and returns how endpoints wait: nil if none does.
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
