// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
)

// A Pod is one that probes, and is probed.
type Pod struct {
	Context   string   `json:"context"`
	Cluster   string   `json:"cluster"`
	Name      string   `json:"name"`
	Node      string   `json:"node"`
	Addresses []string `json:"addresses"`
	// Nameservers are those of its /etc/resolv.conf.
	Nameservers []string `json:"nameservers"`
}

// identity is how a pod answers.
func (p Pod) identity() string { return p.Cluster + "/" + p.Name }

// Paths, which are the columns of the table.
const (
	PathTCP         = "tcp"
	PathTCPLarge    = "tcp-large"
	PathUDP         = "udp"
	PathUDPLarge    = "udp-large"
	PathSetName     = "set-name"
	PathClusterName = "cluster-name"
	// PathIP is a name whose import has an IP, behind which are pods of all
	// clusters. Its probes have no To.
	PathIP = "clusterset-ip"
)

// Paths are all of them.
var Paths = []string{PathTCP, PathTCPLarge, PathUDP, PathUDPLarge, PathSetName, PathClusterName, PathIP}

// Results of a probe and of a finding.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "failed"
	Skipped = "skipped"
)

// Failures besides those of the package probe.
const (
	// Missing is of a name that does not resolve to a pod.
	Missing probe.Failure = "missing"
	// OtherPod is of an address at which another pod answers.
	OtherPod probe.Failure = "other-pod"
)

// An End is a pod at one end of a path.
type End struct {
	Context string `json:"context"`
	Node    string `json:"node"`
	Pod     string `json:"pod"`
}

// A Probe is what became of one path.
type Probe struct {
	From End    `json:"from"`
	To   End    `json:"to,omitzero"`
	Path string `json:"path"`
	// Network is tcp or udp.
	Network string `json:"network"`
	// Target is the address, or the name.
	Target string `json:"target"`
	// Address is where it led, empty if a name did not resolve.
	Address string `json:"address,omitempty"`
	// Bytes are those of the payload.
	Bytes  int    `json:"bytes,omitempty"`
	Result string `json:"result"`
	// Failure and Error say why it failed; Error also why it was skipped.
	Failure probe.Failure `json:"failure,omitempty"`
	Error   string        `json:"error,omitempty"`
	// By is the pod that answered, with the id of its cluster.
	By string `json:"by,omitempty"`
	// Seen is the address of From as To sees it, if that is another.
	Seen string `json:"seen,omitempty"`
}

// names are those of the services that the pods are behind.
type names struct {
	service, withIP, namespace, zone string
}

func (n names) ofSet() string { return n.service + "." + n.namespace + ".svc." + n.zone }
func (n names) ofIP() string  { return n.withIP + "." + n.namespace + ".svc." + n.zone }

func (n names) ofPod(p Pod) string { return p.Name + "." + p.Cluster + "." + n.ofSet() }

// A question is a target and the pods that are to answer.
type question struct {
	target probe.Target
	path   string
	to     []Pod
}

// byName tells whether the target is a name.
func (q question) byName() bool {
	return q.path == PathSetName || q.path == PathClusterName || q.path == PathIP
}

// Tries of names whose connections reach any pod.
const triesOfIP = 8

// A skip is why names of a cluster are not asked for in another, and what to do
// about it.
type skip struct{ why, fix string }

// skips are those between two contexts.
type skips map[[2]string]skip

// questions are those for a pod.
func questions(from Pod, pods []Pod, n names, without skips) []question {
	var asked []question
	var named []Pod
	for _, to := range pods {
		if to.Context == from.Context {
			continue
		}
		for _, address := range to.Addresses {
			if !slices.ContainsFunc(from.Addresses, func(own string) bool { return sameFamily(own, address) }) {
				continue
			}
			for _, path := range []string{PathTCP, PathTCPLarge, PathUDP, PathUDPLarge} {
				target := probe.Target{Host: address, Network: probe.TCP, Count: 1}
				if path == PathUDP || path == PathUDPLarge {
					target.Network = probe.UDP
				}
				target.Large = path == PathTCPLarge || path == PathUDPLarge
				asked = append(asked, question{target, path, []Pod{to}})
			}
		}
		if _, skipped := without[[2]string{from.Context, to.Context}]; !skipped {
			named = append(named, to)
			asked = append(asked, question{
				probe.Target{Host: n.ofPod(to), Network: probe.TCP, Count: 1}, PathClusterName, []Pod{to},
			})
		}
	}
	if len(named) > 0 {
		asked = append(asked, question{probe.Target{Host: n.ofSet(), Network: probe.TCP, Count: 1}, PathSetName, named})
		for _, network := range []string{probe.TCP, probe.UDP} {
			asked = append(asked, question{probe.Target{Host: n.ofIP(), Network: network, Count: triesOfIP}, PathIP, nil})
		}
	}
	return asked
}

// skipped are the probes of names that are not asked for.
func skipped(from Pod, pods []Pod, n names, without skips) []Probe {
	var made []Probe
	for _, to := range pods {
		left, skipped := without[[2]string{from.Context, to.Context}]
		if !skipped {
			continue
		}
		for path, name := range map[string]string{PathSetName: n.ofSet(), PathClusterName: n.ofPod(to)} {
			made = append(made, Probe{
				From: endOf(from), To: endOf(to), Path: path, Network: probe.TCP, Target: name, Result: Skipped, Error: left.why,
			})
		}
	}
	return made
}

// compare has the order of output.
func compare(a, b Probe) int {
	return cmp.Or(cmp.Compare(a.From.Context, b.From.Context), compareTo(a.To.Context, b.To.Context),
		cmp.Compare(a.From.Pod, b.From.Pod), cmp.Compare(a.To.Pod, b.To.Pod),
		cmp.Compare(slices.Index(Paths, a.Path), slices.Index(Paths, b.Path)),
		cmp.Compare(a.Network, b.Network), cmp.Compare(a.Target, b.Target))
}

// compareTo has what is of no cluster last.
func compareTo(a, b string) int {
	if (a == "") != (b == "") {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

// judge holds the result of a question against what is expected: a probe for
// each pod that is to answer, and one if any pod may.
func judge(from Pod, asked question, result probe.Result, pods []Pod) []Probe {
	base := Probe{From: endOf(from), Path: asked.path, Network: asked.target.Network, Target: asked.target.Host}
	if len(asked.to) == 0 {
		return []Probe{base.outcome(from, result, pods, true)}
	}
	var made []Probe
	for _, to := range asked.to {
		each := base
		each.To = endOf(to)
		made = append(made, each.outcome(from, result, []Pod{to}, false))
	}
	return made
}

// outcome completes a probe. One of the expected pods must have answered each
// exchange: each with one of their addresses, or each behind an IP.
func (p Probe) outcome(from Pod, result probe.Result, expected []Pod, behindIP bool) Probe {
	p.Result = Failed
	if result.Failure != "" {
		p.Failure, p.Error = result.Failure, result.Error
		return p
	}
	p.Failure, p.Error = Missing, "the name does not resolve to it"
	tried, failed := 0, 0
	for _, exchange := range result.Exchanges {
		if !behindIP && !slices.Contains(expected[0].Addresses, exchange.Address) ||
			!slices.ContainsFunc(from.Addresses, func(own string) bool { return sameFamily(own, exchange.Address) }) {
			continue
		}
		if exchange.Failure == "" &&
			!slices.ContainsFunc(expected, func(pod Pod) bool { return pod.identity() == exchange.By }) {
			exchange.Failure, exchange.Error = OtherPod, exchange.By+" answers"
		}
		tried++
		if exchange.Failure != "" {
			failed++
		}
		if tried > 1 && (failed != 1 || exchange.Failure == "") {
			continue // it is that of the first, or of the first that failed
		}
		p.Address, p.Bytes, p.By = exchange.Address, exchange.Bytes, exchange.By
		p.Failure, p.Error = exchange.Failure, exchange.Error
		if p.Seen = exchange.To; exchange.To == exchange.From {
			p.Seen = ""
		}
	}
	switch {
	case tried > 0 && failed == 0:
		p.Result = OK
	case behindIP && failed > 0:
		p.Error = fmt.Sprintf("%d of %d failed: %s", failed, tried, p.Error)
	}
	return p
}

func endOf(p Pod) End { return End{Context: p.Context, Node: p.Node, Pod: p.Name} }

func sameFamily(one, other string) bool {
	a, err := netip.ParseAddr(one)
	b, otherErr := netip.ParseAddr(other)
	return err == nil && otherErr == nil && a.Is4() == b.Is4()
}
