// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

var networkChecks = []Check{
	{Name: "pod-ranges", About: "no two clusters have overlapping ranges of pods", run: func(s *Set, c *Cluster) (found []problem) {
		for _, other := range s.others(c) {
			if one, two, ok := overlap(c.podCIDRs(), other.podCIDRs()); ok {
				found = append(found, wrong("Give one of the two another range of pods.", "Its range of pods %s overlaps %s of %s: pods of the two cannot reach each other.", one, two, other.Context))
			}
		}
		return found
	}},
	{Name: "service-ranges", About: "no cluster has pods where another has Services", run: func(s *Set, c *Cluster) (found []problem) {
		for _, other := range s.others(c) {
			if one, two, ok := overlap(c.podCIDRs(), other.ServiceCIDRs); ok {
				found = append(found, wrong("Give one of the two another range.", "Its range of pods %s overlaps the range of Services %s of %s: these pods cannot be reached from there.", one, two, other.Context))
			}
		}
		return found
	}},
	ofMembers("member-ranges", "the annotation cidrs of a member has the ranges of its pods", func(s *Set, c *Cluster, m *facts.Member) []problem {
		if len(m.CIDRs) == 0 || m.Secret == nil {
			return nil
		}
		for _, other := range s.others(c) {
			if other.ID != m.ID {
				continue
			}
			var lacking []string
			for _, pods := range other.podCIDRs() {
				if !slices.ContainsFunc(m.CIDRs, func(p netip.Prefix) bool { return p.Bits() <= pods.Bits() && p.Contains(pods.Addr()) }) {
					lacking = append(lacking, pods.String())
				}
			}
			if len(lacking) > 0 {
				all := append(texts(m.CIDRs), lacking...)
				return []problem{wrong(c.kubectl("-n %s annotate secret %s %s=%s --overwrite", c.System, m.Secret.Name, member.CIDRsAnnotation, strings.Join(all, ",")),
					"Secret %s confines %s to %s, and it has pods in %s: their endpoints are refused.", m.Secret.Name, m.ID, strings.Join(texts(m.CIDRs), ","), strings.Join(lacking, ","))}
			}
		}
		return nil
	}),
	{Name: "node-version", About: "the nodes' kube-proxy is 1.26 or newer", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Nodes {
			kubelet := c.Nodes[i].Status.NodeInfo.KubeletVersion
			if parsed, err := version.ParseGeneric(kubelet); err == nil && parsed.Major() > 0 && parsed.LessThan(oldest) {
				found = append(found, odd("Upgrade the node to 1.26 or newer.", "Node %s is %s: its kube-proxy may go on sending traffic to a silent cluster.", c.Nodes[i].Name, kubelet))
			}
		}
		return found
	}},
	{Name: "zones", About: "all nodes say in which zone they are", run: func(_ *Set, c *Cluster) (found []problem) {
		for i := range c.Nodes {
			if c.Nodes[i].Labels[corev1.LabelTopologyZone] == "" {
				found = append(found, odd(c.kubectl("label node %s %s=%s", c.Nodes[i].Name, corev1.LabelTopologyZone, c.someZone()),
					"Node %s has no zone: kube-proxy on it takes no notice of which endpoints are near.", c.Nodes[i].Name))
			}
		}
		return found
	}},
}

// others are the clusters that a cluster can be compared with.
func (s *Set) others(c *Cluster) []*Cluster {
	return slices.DeleteFunc(slices.Clone(s.Clusters), func(other *Cluster) bool {
		return other == c || !reached(other) || other.UID == c.UID
	})
}

// someZone is a zone that a node of the cluster is in.
func (c *Cluster) someZone() string {
	for i := range c.Nodes {
		if zone := c.Nodes[i].Labels[corev1.LabelTopologyZone]; zone != "" {
			return zone
		}
	}
	return "<zone>"
}

func overlap(a, b []netip.Prefix) (one, two netip.Prefix, ok bool) {
	for _, one := range a {
		for _, two := range b {
			if one.Overlaps(two) {
				return one, two, true
			}
		}
	}
	return netip.Prefix{}, netip.Prefix{}, false
}

func texts(prefixes []netip.Prefix) []string {
	out := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		out[i] = prefix.String()
	}
	return out
}
