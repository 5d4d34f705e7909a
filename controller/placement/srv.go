// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// srv returns the value of export.AnnotationSRV for a slice of a headless import with demoted endpoints, empty for none:
// the level as priority, so that clients also know the next clusters, and the shares as weights, which are finer than
// whole endpoints. Endpoints that a weight leaves out are listed with the others of their cluster. Unreachable and
// drained clusters are not listed while others are ready.
func (p *placement) srv(from merge.Contribution, slice *export.Slice, demoted []int) string {
	place := p.places[from.View.Cluster]
	if !p.headless || place.outside || from.Demote && len(demoted) > 0 ||
		!slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return export.IsReady(&e) }) {
		return ""
	}
	priority, weight := place.use, usualWeight
	if each, weighed := p.weighings[slice.AddressType].each[from.View.Cluster]; weighed && each == 0 {
		priority |= surplus
	} else if weighed {
		weight = each
	}
	if priority == 0 && weight == usualWeight && len(demoted) == 0 {
		return "" // DNS servers do the same without the annotation
	}
	text := fmt.Sprintf("priority=%d", priority)
	if weight != usualWeight {
		text += fmt.Sprintf(" weight=%d", weight)
	}
	var terminating []string
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		if c := endpoint.Conditions; !export.IsReady(endpoint) && ptr.Deref(c.Serving, true) && ptr.Deref(c.Terminating, false) {
			terminating = append(terminating, strconv.Itoa(i))
		}
	}
	if len(terminating) > 0 {
		text += " terminating=" + strings.Join(terminating, ",")
	}
	return text
}
