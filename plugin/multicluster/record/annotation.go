// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
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

// parseSRV parses the value of AnnotationSRV: the priority and weight of the SRV records, 0 if missing, and the indices
// after terminating.
func parseSRV(text string) (priority uint8, weight uint16, terminating map[int]bool, err error) {
	terminating = make(map[int]bool)
	for part := range strings.SplitSeq(text, " ") {
		key, value, _ := strings.Cut(part, "=")
		var n uint64
		switch key {
		case "priority":
			n, err = strconv.ParseUint(value, 10, 8)
			priority = uint8(n)
		case "weight":
			n, err = strconv.ParseUint(value, 10, 16)
			weight = uint16(n)
		case "terminating":
			for index := range strings.SplitSeq(value, ",") {
				i, invalid := strconv.Atoi(index)
				terminating[i], err = true, cmp.Or(err, invalid)
			}
		default:
			err = strconv.ErrSyntax
		}
		if err != nil {
			return 0, 0, nil, err
		}
	}
	return priority, weight, terminating, nil
}

// readSRV applies the annotation and returns which endpoints have the condition waiting: nil if none has.
func (e *Endpoints) readSRV(text string) (waits func(i int) bool) {
	if text == "" {
		return nil
	}
	priority, weight, terminating, err := parseSRV(text)
	if err != nil {
		e.skips.Add(InvalidSRV, 1)
		return nil
	}
	e.Priority, e.Weight = priority, cmp.Or(weight, usualWeight)
	return func(i int) bool { return !terminating[i] }
}
