// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"fmt"
	"net/netip"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// summarize sets the summary.
func (e *explanation) summarize() {
	if e.Import == nil {
		why := "neither it nor any of its members exports the service"
		switch {
		case e.Elsewhere != "" && len(e.Exports) > 0:
			why = e.Elsewhere
		case len(e.Properties) > 0:
			why = "the controller has not written the import yet"
		case len(e.Exports) > 0:
			why = "no export is valid, meant for this cluster and accepted"
		case len(e.Unread) > 0:
			why = "no export is known, but not all members are read completely"
		}
		e.Summary = fmt.Sprintf("%s is not imported in %s, because %s. Its name does not resolve there.", e.Service, e.Cluster, why)
		return
	}
	counts := map[string]int{}
	for _, endpoint := range e.Endpoints {
		counts[endpoint.State]++
	}
	var others []string
	for _, how := range []string{
		state.Waiting, state.Demoted, state.NotReady, state.Unused, state.Refused, state.Outside, state.NotHere,
	} {
		if counts[how] > 0 {
			others = append(others, fmt.Sprintf("%d %s", counts[how], how))
		}
	}
	traffic := fmt.Sprintf("Traffic goes to %d of %d endpoints", counts[state.Used], len(e.Endpoints))
	switch {
	case len(e.Endpoints) == 0:
		traffic = "There are no endpoints"
	case len(others) > 0:
		traffic += " (" + strings.Join(others, ", ") + ")"
	}
	e.Summary = fmt.Sprintf("It resolves to %s, its virtual IP in %s.", strings.Join(e.Import.IPs, " and "), e.Cluster)
	switch {
	case e.headless():
		e.Summary = "It is headless and resolves to the addresses of its endpoints."
	case len(e.Import.IPs) == 0:
		e.Summary = "It has no IP in " + e.Cluster + "."
	}
	e.Summary += " " + traffic + "."
}

// forNobody stands for hints that no local node follows.
const forNobody = "no local zone"

// hintsOf returns the local zones and nodes in hints, or forNobody.
func hintsOf(hints *discoveryv1.EndpointHints) (texts []string) {
	if hints == nil {
		return nil
	}
	for _, each := range hints.ForNodes {
		if !placement.ForNobody(each.Name) {
			texts = append(texts, "node "+each.Name)
		}
	}
	for _, each := range hints.ForZones {
		if !placement.ForNobody(each.Name) {
			texts = append(texts, "zone "+each.Name)
		}
	}
	if len(texts) == 0 {
		return []string{forNobody}
	}
	return texts
}

func compareAddresses(a, b string) int {
	left, err := netip.ParseAddr(a)
	right, otherErr := netip.ParseAddr(b)
	if err != nil || otherErr != nil {
		return strings.Compare(a, b)
	}
	return left.Compare(right)
}
