// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// summarize sets the summary.
func (e *explanation) summarize() {
	if e.Import == nil {
		e.Summary = fmt.Sprintf("%s is not imported in %s. Its name does not resolve there.", e.Service, e.Cluster)
		return
	}
	counts := map[string]int{}
	for _, endpoint := range e.Endpoints {
		counts[endpoint.State]++
	}
	var others []string
	for _, how := range []string{state.Waiting, state.Demoted, state.NotReady, state.Unused, state.Outside} {
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

// forNobody reports whether no local node follows hints.
func forNobody(hints *discoveryv1.EndpointHints) bool {
	return !slices.ContainsFunc(hints.ForNodes, func(node discoveryv1.ForNode) bool { return !placement.ForNobody(node.Name) }) &&
		!slices.ContainsFunc(hints.ForZones, func(zone discoveryv1.ForZone) bool { return !placement.ForNobody(zone.Name) })
}

func compareAddresses(a, b string) int {
	left, _ := netip.ParseAddr(a) // a text that is not an address comes first
	right, _ := netip.ParseAddr(b)
	return left.Compare(right)
}

// contextOf returns a placeholder for a context that reaches the cluster: see state.Finding.
func contextOf(cluster string) string { return "<context of " + cluster + ">" }

// join returns the command that gives the local cluster a new credential for another, or an instruction if the credential
// is not a Secret: the Secret that join creates would take precedence.
func (l *Leader) join(candidate *member.Candidate, id, flags string) string {
	if candidate.Source != "" {
		return "Correct the credential of " + candidate.String() + "."
	}
	return "kubectl clusterset join " + contextOf(l.Cluster) + " " + contextOf(id) + flags
}

// quoted puts a command into backquotes, and returns an instruction unchanged.
func quoted(fix string) string {
	if strings.HasPrefix(fix, "kubectl ") {
		return "`" + fix + "`."
	}
	return fix
}

// annotate returns the command that annotates the object that makes a cluster a member.
func (l *Leader) annotate(candidate *member.Candidate, key, value string) string {
	return l.command(candidate, "annotate", fmt.Sprintf(" '%s=%s' --overwrite", key, value))
}

// identify returns a command that corrects or deletes the Secret that makes a cluster a member, or an instruction: an object of
// a source belongs to another system.
func (l *Leader) identify(candidate *member.Candidate, verb, flags string) string {
	if candidate.Source != "" {
		return fmt.Sprintf("Correct %s, or the flag that makes it the member %s: %s.", candidate, candidate.Cluster, candidate.Source)
	}
	return l.command(candidate, verb, flags)
}

func (l *Leader) command(candidate *member.Candidate, verb, flags string) string {
	namespace, name, _ := strings.Cut(candidate.Name, "/")
	return fmt.Sprintf("kubectl --context %s -n %s %s %s %s%s", contextOf(l.Cluster), namespace, verb,
		strings.ToLower(candidate.Kind), name, flags)
}

func withdraw(cluster, service string) string {
	return "Correct the Service, or: `kubectl clusterset unexport " + service + " --contexts " + contextOf(cluster) + "`."
}

// accept returns the command that accepts a service of a member.
func (l *Leader) accept(m *member.Member, service types.NamespacedName) string {
	if own := m.Accept(); own != nil {
		return l.extend(m.Candidate(), scope.AcceptAnnotation, own.String(), service.String())
	}
	return fmt.Sprintf("kubectl --context %s label namespace %s %s=true", contextOf(l.Cluster), service.Namespace, scope.AcceptLabel)
}

// confine returns the command that lets the local cluster accept addresses of a member in one more range.
func (l *Leader) confine(m *member.Member) string {
	var ranges []string
	for _, prefix := range m.CIDRs() {
		ranges = append(ranges, prefix.String())
	}
	return l.extend(m.Candidate(), member.CIDRsAnnotation, strings.Join(ranges, ","), "<range of that address>")
}

// extend returns the command that adds a word to the list in an annotation of a member, or an instruction if the command would
// be too long.
func (l *Leader) extend(candidate *member.Candidate, key, list, word string) string {
	if len(list) > maxList {
		return "Add " + word + " to the annotation " + key + " of " + candidate.String() + "."
	}
	return l.annotate(candidate, key, strings.TrimPrefix(list+","+word, ","))
}

// correct returns the fix for a problem of an export. confine is the fix for an address outside the ranges.
func correct(cluster, confine string, problem export.Problem) string {
	if problem.Reason == export.ReasonForeignAddress && confine != "" {
		return confine
	}
	return "Correct the object in " + cluster + "."
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
