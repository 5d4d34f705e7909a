// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
)

// A Finding is what is wrong between two clusters, or in one.
type Finding struct {
	// From and To are contexts. To is empty if it is about From alone.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Result is failed, warning or skipped.
	Result string `json:"result"`
	What   string `json:"what"`
	// Fix is a command, or a sentence in which commands stand between backquotes.
	Fix string `json:"fix"`
}

// A diagnosis makes findings of the probes that failed.
type diagnosis struct {
	probes []Probe
	pods   []Pod
	names  names
	skips  skips
	// flags are those that name the set in commands.
	flags string
}

// A fault is a kind of failure of what is between two addresses.
type fault string

const (
	noFault    fault = ""
	unreached  fault = "unreached"
	rejected   fault = "rejected"
	unrouted   fault = "unrouted"
	otherOwner fault = "other owner"
	noTCP      fault = "no TCP"
	noUDP      fault = "no UDP"
	noLarge    fault = "no large packets"
)

// A link is the probes of one address of one pod from another.
type link struct {
	from, to End
	address  string
}

// findings are all, those of addresses first, because names rest on them.
func (d diagnosis) findings() []Finding {
	found := []Finding{}
	pairs := d.pairs()
	broken := map[[2]string]bool{}
	for _, pair := range pairs {
		ofPair := d.ofAddresses(pair)
		broken[pair] = slices.ContainsFunc(ofPair, func(f Finding) bool { return f.Result == Failed })
		found = append(found, ofPair...)
	}
	named := map[string]bool{} // clusters of which it is said why no name resolves
	for _, pair := range pairs {
		if f := d.unresolved(pair[0]); f != nil && !named[pair[0]] {
			named[pair[0]] = true
			found = append(found, *f)
		}
	}
	for _, pair := range pairs {
		if !named[pair[0]] {
			found = append(found, d.ofNames(pair, broken[pair])...)
		}
	}
	for _, from := range contextsOf(pairs) {
		anyBroken := slices.ContainsFunc(pairs, func(pair [2]string) bool { return pair[0] == from && broken[pair] })
		if !named[from] && !anyBroken {
			found = append(found, d.ofIP(from)...)
		}
	}
	return found
}

// pairs are the contexts that are at the ends of probes, in their order.
func (d diagnosis) pairs() [][2]string {
	var pairs [][2]string
	for _, p := range d.probes {
		if pair := [2]string{p.From.Context, p.To.Context}; p.Path != PathIP && !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

func contextsOf(pairs [][2]string) []string {
	var contexts []string
	for _, pair := range pairs {
		if !slices.Contains(contexts, pair[0]) {
			contexts = append(contexts, pair[0])
		}
	}
	return contexts
}

// links are the probes of addresses from one cluster to another, by path.
func (d diagnosis) links(pair [2]string) map[link]map[string]Probe {
	found := map[link]map[string]Probe{}
	for _, p := range d.probes {
		if p.From.Context != pair[0] || p.To.Context != pair[1] || p.Path == PathSetName || p.Path == PathClusterName {
			continue
		}
		at := link{p.From, p.To, p.Target}
		if found[at] == nil {
			found[at] = map[string]Probe{}
		}
		found[at][p.Path] = p
	}
	return found
}

// faultsOf tells what is wrong with a link, by which of its probes failed.
func faultsOf(probes map[string]Probe) []fault {
	failed := func(path string) bool { return probes[path].Result == Failed }
	for _, p := range probes {
		if p.Failure == OtherPod || p.Failure == probe.Foreign {
			return []fault{otherOwner}
		}
	}
	if failed(PathTCP) && failed(PathUDP) {
		switch telling(probes).Failure {
		case probe.Refused, probe.Reset:
			return []fault{rejected}
		case probe.Unreachable:
			return []fault{unrouted}
		}
		return []fault{unreached}
	}
	var faults []fault
	if failed(PathTCP) {
		faults = append(faults, noTCP)
	}
	if failed(PathUDP) {
		faults = append(faults, noUDP)
	}
	if !failed(PathTCP) && failed(PathTCPLarge) || !failed(PathUDP) && failed(PathUDPLarge) {
		faults = append(faults, noLarge)
	}
	return faults
}

// telling is the probe that says most of why none got through. Routers limit how
// often they say so, and the other packets are lost without a word.
func telling(probes map[string]Probe) Probe {
	for _, path := range Paths {
		if p, tried := probes[path]; tried && p.Failure != probe.Timeout {
			return p
		}
	}
	return probes[PathTCP]
}

// ofAddresses are the findings between the pods of two clusters.
func (d diagnosis) ofAddresses(pair [2]string) (found []Finding) {
	links := d.links(pair)
	at := map[fault][]link{}
	seen := map[string]bool{}
	for _, l := range slices.SortedFunc(maps.Keys(links), compareLinks) {
		for _, f := range faultsOf(links[l]) {
			at[f] = append(at[f], l)
		}
		if translated := links[l][PathTCP].Seen; translated != "" {
			seen[translated] = true
		}
	}
	for _, f := range []fault{otherOwner, unrouted, rejected, unreached, noTCP, noUDP, noLarge} {
		if len(at[f]) == 0 {
			continue
		}
		what, fix := d.explain(f, pair, links[at[f][0]], at[f][0])
		found = append(found, Finding{
			From: pair[0], To: pair[1], Result: Failed, What: what + scope(at[f], len(links)), Fix: fix,
		})
	}
	if len(seen) > 0 {
		found = append(found, Finding{
			From: pair[0], To: pair[1], Result: Warning,
			What: fmt.Sprintf("Pods of %s see pods of %s at other addresses: %s.", pair[1], pair[0],
				strings.Join(slices.Sorted(maps.Keys(seen)), ", ")),
			Fix: fmt.Sprintf("Exclude the pod ranges of %s from masquerading in %s, or expect NetworkPolicies and logs "+
				"of %s to see these addresses.", pair[1], pair[0], pair[1]),
		})
	}
	return found
}

// explain says what a fault is, with the probes of the first link that has it,
// and how to fix it.
func (d diagnosis) explain(f fault, pair [2]string, probes map[string]Probe, l link) (what, fix string) {
	from, to := pair[0], pair[1]
	switch f {
	case otherOwner:
		by := cmp.Or(probes[PathTCP].By, probes[PathUDP].By, "another program")
		return fmt.Sprintf("The address %s of a pod of %s is routed to %s", l.address, to, by),
			"Give the clusters pod ranges that do not overlap, and send packets to " + to +
				"'s without address translation: `kubectl clusterset check` compares the ranges."
	case unrouted:
		return fmt.Sprintf("No route leads from pods of %s to pods of %s: %s", from, to, telling(probes).Error),
			fmt.Sprintf("Route the pod ranges of %s in the network of %s.", to, from)
	case rejected:
		return fmt.Sprintf("Packets from pods of %s to pods of %s are rejected: %s", from, to, telling(probes).Error),
			fmt.Sprintf("Find the firewall, security group or NetworkPolicy that rejects them, or the host that has "+
				"these addresses besides %s.", to)
	case noTCP:
		return fmt.Sprintf("Pods of %s reach pods of %s over UDP, but not over TCP", from, to),
			"Allow TCP, on all ports, in the firewalls, security groups and NetworkPolicies between the pods."
	case noUDP:
		return fmt.Sprintf("Pods of %s reach pods of %s over TCP, but not over UDP", from, to),
			"Allow UDP, on all ports, in the firewalls, security groups and NetworkPolicies between the pods."
	case noLarge:
		return fmt.Sprintf("Small packets between pods of %s and %s arrive, packets of the interface's size (%d bytes "+
				"of UDP payload) do not", from, to, probes[PathUDPLarge].Bytes),
			"The MTU of the path is smaller than that of the pods' interfaces. Lower the MTU in the configuration of the " +
				"CNI in both clusters, or allow ICMP \"fragmentation needed\" (ICMPv6 \"packet too big\") and fragments."
	}
	fix = fmt.Sprintf("Route the pod ranges of %s in the network of %s, and those of %s in the network of %s. "+
		"Allow them in firewalls, security groups and NetworkPolicies.", to, from, from, to)
	if d.works([2]string{to, from}) {
		fix = fmt.Sprintf("The other direction works, so routes exist. Allow packets from pod addresses of %s in the "+
			"firewalls, security groups and NetworkPolicies of %s.", from, to)
	}
	return fmt.Sprintf("Packets from pods of %s to pods of %s get no answer", from, to), fix
}

// works tells whether an address of one cluster was reached from another.
func (d diagnosis) works(pair [2]string) bool {
	return slices.ContainsFunc(d.probes, func(p Probe) bool {
		return p.From.Context == pair[0] && p.To.Context == pair[1] && p.Path == PathTCP && p.Result == OK
	})
}

// scope ends a sentence. It names the links if others have no such fault.
func scope(at []link, all int) string {
	if len(at) == all {
		return fmt.Sprintf(" (such as node %s to %s on node %s).", at[0].from.Node, at[0].address, at[0].to.Node)
	}
	var texts []string
	for _, l := range at {
		texts = append(texts, fmt.Sprintf("node %s to %s on node %s", l.from.Node, l.address, l.to.Node))
	}
	return fmt.Sprintf(", on %d of %d paths: %s.", len(at), all, strings.Join(texts, ", "))
}

func compareLinks(a, b link) int {
	return cmp.Or(cmp.Compare(a.from.Pod, b.from.Pod), cmp.Compare(a.to.Pod, b.to.Pod), cmp.Compare(a.address,
		b.address))
}
