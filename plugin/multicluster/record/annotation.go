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

// readSRV applies the annotation and returns which endpoints have the condition waiting: nil if none has. It ignores what it
// does not know.
func (e *Endpoints) readSRV(text string) (waits func(i int) bool) {
	if text == "" {
		return nil
	}
	terminating := make(map[string]bool)
	for part := range strings.SplitSeq(text, " ") {
		switch key, value, _ := strings.Cut(part, "="); key {
		case "priority":
			n, _ := strconv.ParseUint(value, 10, 8)
			e.Priority = uint8(n)
		case "weight":
			n, _ := strconv.ParseUint(value, 10, 16)
			e.Weight = cmp.Or(uint16(n), usualWeight)
		case "terminating":
			for index := range strings.SplitSeq(value, ",") {
				terminating[index] = true
			}
		}
	}
	return func(i int) bool { return !terminating[strconv.Itoa(i)] }
}
