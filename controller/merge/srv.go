// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// srvs are which slices tell DNS servers how their endpoints come in SRV answers.
type srvs uint8

const (
	srvOfNone      srvs = iota
	srvOfSaturated      // those of saturated clusters of a headless import
	srvOfAll            // those of a headless import with tiers or weights
)

func (o order) srvs() srvs {
	switch {
	case !o.headless:
		return srvOfNone
	case o.tiers.Any() || o.weights != nil:
		return srvOfAll
	}
	return srvOfSaturated
}

// srv returns the value of export.AnnotationSRV for a slice of which these endpoints are demoted, empty for none: the
// level as priority, so that clients know the next clusters too, and shares in weights, which are finer than endpoints.
// Endpoints that a weight leaves out are listed with the others of their cluster. Silent and drained clusters are not
// listed while others are ready.
func (p *Plan) srv(cluster string, slice *export.Slice, demoted []int) string {
	part := p.parts[cluster]
	if p.srvs == srvOfNone || p.srvs == srvOfSaturated && !part.spec.Saturated || part.outside ||
		part.demote && len(demoted) > 0 || !anyReady(slice) {
		return ""
	}
	priority, weight := part.level, traffic.UsualWeight
	if p.cuts != nil {
		switch each := p.cuts.each[family{cluster, slice.AddressType}]; each {
		case 0:
			priority |= surplus
		default:
			weight = each
		}
	}
	if priority == 0 && weight == traffic.UsualWeight && len(demoted) == 0 {
		return "" // that is what DNS servers do without the annotation
	}
	text := fmt.Sprintf("priority=%d", priority)
	if weight != traffic.UsualWeight {
		text += fmt.Sprintf(" weight=%d", weight)
	}
	var terminating []string
	for i, endpoint := range slice.Endpoints {
		if c := endpoint.Conditions; !isReady(endpoint) && ptr.Deref(c.Serving, true) && ptr.Deref(c.Terminating, false) {
			terminating = append(terminating, strconv.Itoa(i))
		}
	}
	if len(terminating) > 0 {
		text += " terminating=" + strings.Join(terminating, ",")
	}
	return text
}
