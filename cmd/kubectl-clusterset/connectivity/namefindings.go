// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
)

// unresolved is why the name of the set does not resolve for pods of a cluster,
// nil if it does for all.
func (d diagnosis) unresolved(from string) *Finding {
	var at []Probe
	nodes := map[string]bool{}
	for _, p := range d.probes {
		if p.From.Context != from || p.Path != PathSetName || p.Result == Skipped {
			continue
		}
		nodes[p.From.Node] = true
		if p.Result == Failed && p.Address == "" && p.Failure != Missing &&
			!slices.ContainsFunc(at, func(other Probe) bool { return other.From == p.From }) {
			at = append(at, p)
		}
	}
	if len(at) == 0 {
		return nil
	}
	what := fmt.Sprintf("Pods of %s cannot resolve %s", from, d.names.ofSet())
	var failing []string
	for _, p := range at {
		if !slices.Contains(failing, p.From.Node) {
			failing = append(failing, p.From.Node)
		}
	}
	if len(failing) < len(nodes) {
		what += " on node " + strings.Join(failing, ", ")
	}
	servers := strings.Join(d.nameservers(at[0].From), ", ")
	f := &Finding{From: from, Result: Failed}
	if at[0].Failure == probe.NotFound {
		f.What = fmt.Sprintf("%s: their nameserver %s answers that it does not exist.", what, servers)
		f.Fix = fmt.Sprintf("Find what answers them: CoreDNS without the zone, NodeLocal DNSCache that does not pass "+
			"it on (an address such as 169.254.20.10 is its own), or a dnsConfig: `kubectl clusterset check "+
			"--contexts %s%s`.", from, d.flags)
		return f
	}
	f.What = fmt.Sprintf("%s: their nameserver %s does not answer (%s).", what, servers, at[0].Error)
	f.Fix = fmt.Sprintf("Let pods reach their nameserver over UDP and TCP, port 53, and see whether the cluster's "+
		"DNS works: `kubectl clusterset check --contexts %s%s`.", from, d.flags)
	return f
}

// nameservers are those of a pod.
func (d diagnosis) nameservers(end End) []string {
	for _, pod := range d.pods {
		if pod.Context == end.Context && pod.Name == end.Pod {
			return pod.Nameservers
		}
	}
	return nil
}

// ofNames are the findings about names of pods of a cluster in another, where
// names resolve. Connections that fail are left out if addresses fail, too.
func (d diagnosis) ofNames(pair [2]string, broken bool) (found []Finding) {
	explain := fmt.Sprintf("kubectl clusterset explain %s/%s --contexts %s,%s%s", d.names.namespace, d.names.service,
		pair[0], pair[1], d.flags)
	if left, skipped := d.skips[pair]; skipped {
		return []Finding{{
			From: pair[0], To: pair[1], Result: Skipped, What: "Names are not tested: " + left.why,
			Fix: left.fix,
		}}
	}
	for _, p := range d.probes {
		if p.From.Context != pair[0] || p.To.Context != pair[1] || p.Path != PathSetName && p.Path != PathClusterName {
			continue
		}
		f := Finding{From: pair[0], To: pair[1], Result: Failed, Fix: explain}
		switch {
		case p.Result == OK, p.Address != "" && broken:
			continue
		case p.Address != "":
			f.What = fmt.Sprintf("%s resolves to %s, but the connection fails: %s.", p.Target, p.Address, p.Error)
			f.Fix = "Run the test again: the address answered before."
		case p.Failure == Missing:
			f.What = fmt.Sprintf("%s resolves to no address of pod %s of %s.", p.Target, p.To.Pod, pair[1])
		default:
			f.What = fmt.Sprintf("%s does not resolve: %s.", p.Target, p.Error)
		}
		if !slices.ContainsFunc(found, func(other Finding) bool { return other.What == f.What }) {
			found = append(found, f)
		}
	}
	return found
}

// ofIP are the findings about the IP behind which are pods of all clusters.
func (d diagnosis) ofIP(from string) (found []Finding) {
	for _, p := range d.probes {
		if p.From.Context != from || p.Path != PathIP || p.Result != Failed {
			continue
		}
		f := Finding{From: from, Result: Failed}
		if p.Address == "" {
			f.What = fmt.Sprintf("%s does not resolve: %s.", p.Target, p.Error)
			f.Fix = fmt.Sprintf("kubectl clusterset explain %s/%s "+
				"--contexts %s%s", d.names.namespace, d.names.withIP, from, d.flags)
		} else {
			f.What = fmt.Sprintf("Pods of %s reach pods of all clusters, but not through the IP %s of an import over %s: "+
				"node %s, %s.", from, p.Address, strings.ToUpper(p.Network), p.From.Node, p.Error)
			f.Fix = fmt.Sprintf("See why kube-proxy, or what replaces it, on node %s does not send traffic of a Service "+
				"to endpoints of other clusters.", p.From.Node)
		}
		if !slices.ContainsFunc(found, func(other Finding) bool { return other.What == f.What }) {
			found = append(found, f)
		}
	}
	return found
}
