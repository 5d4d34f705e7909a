// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

var networkChecks = []Check{
	{
		Name: "pod-ranges", About: "pod ranges of clusters do not overlap",
		skip: func(s *Set, c *Cluster) string {
			return s.uncompared(c, "pod ranges", (*Cluster).podCIDRs)
		}, run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.others(c) {
				if one, two, ok := overlap(c.podCIDRs(), other.podCIDRs()); ok {
					found = append(found, wrong(
						"Give one of the two clusters another pod range; nodes keep their ranges, so this takes new nodes.",
						"Its pod range %s (spec.podCIDRs of the nodes) overlaps %s of %s, so their pods cannot reach each other. "+
							"Ignore this if your CNI assigns other ranges.", one, two, other.Context))
				}
			}
			return found
		},
	},
	{
		Name: "service-ranges", About: "pod ranges do not overlap Service ranges of other clusters",
		skip: func(s *Set, c *Cluster) string {
			return s.uncompared(c, "Service ranges",
				func(other *Cluster) []netip.Prefix { return other.ServiceCIDRs })
		}, run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.others(c) {
				if one, two, ok := overlap(c.podCIDRs(), other.ServiceCIDRs); ok {
					found = append(found, wrong(
						"Change one of the two ranges; the Service range is in the ServiceCIDRs.",
						"Its pod range %s (spec.podCIDRs of the nodes) overlaps the Service range %s of %s, which cannot reach these "+
							"pods. Ignore this if your CNI assigns other ranges.", one, two, other.Context))
				}
			}
			return found
		},
	},
	{
		Name: "node-version", About: "the nodes' kube-proxy is 1.26 or newer",
		run: func(_ *Set, c *Cluster) (found []problem) {
			for i := range c.Nodes {
				kubelet := c.Nodes[i].Status.NodeInfo.KubeletVersion
				if parsed, err := version.ParseGeneric(kubelet); err == nil && parsed.Major() > 0 &&
					parsed.LessThan(oldestProxy) {
					found = append(found, odd("Upgrade the node to 1.26 or newer.",
						"Node %s runs %s, whose kube-proxy may keep sending traffic to a silent cluster.", c.Nodes[i].Name,
						kubelet))
				}
			}
			return found
		},
	},
	{
		Name: "zones", About: "if services prefer near endpoints, all nodes have a zone",
		run: func(s *Set, c *Cluster) (found []problem) {
			wanted := c.wantsZones(s.Zone)
			if wanted == "" {
				return nil
			}
			for i := range c.Nodes {
				if c.Nodes[i].Labels[corev1.LabelTopologyZone] == "" {
					found = append(found, odd(c.kubectl("label node %s %s=<zone of the node>", c.Nodes[i].Name,
						corev1.LabelTopologyZone),
						"Node %s has no label %s, so its clients do not prefer near endpoints, although %s.",
						c.Nodes[i].Name, corev1.LabelTopologyZone, wanted))
				}
			}
			return found
		},
	},
}

// others are the clusters that a cluster can be compared with.
func (s *Set) others(c *Cluster) []*Cluster {
	return slices.DeleteFunc(slices.Clone(s.Clusters), func(other *Cluster) bool {
		return other == c || !reached(other) || other.UID == c.UID
	})
}

// uncompared returns why the pod ranges of a cluster cannot be compared with
// those of any other cluster, or an empty string.
func (s *Set) uncompared(c *Cluster, what string, ranges func(*Cluster) []netip.Prefix) string {
	others := s.others(c)
	switch {
	case len(others) == 0:
		return "There is no other cluster to compare with: select all clusters of the set with --contexts."
	case len(c.podCIDRs()) == 0:
		return "Its nodes have no spec.podCIDRs, because the CNI assigns other ranges: compare the ranges of the CNI with " +
			"the " + what + " of the other clusters."
	case !slices.ContainsFunc(others, func(other *Cluster) bool { return len(ranges(other)) > 0 }):
		return "The " + what + " of the other clusters are unknown: compare them with " +
			strings.Join(texts(c.podCIDRs()), ", ") + "."
	}
	return ""
}

// wantsZones is why nodes need a zone, empty if they do not.
func (c *Cluster) wantsZones(zone string) string {
	if corefile := c.parsed(); corefile != nil && slices.Equal(corefile.Option(zone, "prefer"), []string{"zone"}) {
		return "the Corefile has `prefer zone`"
	}
	for i := range c.Imports {
		each := &c.Imports[i]
		if !names.IsManaged(each) || each.Spec.Type != v1beta1.ClusterSetIP {
			continue
		}
		distribution := ptr.Deref(each.Spec.TrafficDistribution, "")
		if distribution != "" { // hints for zones alone need all nodes
			return each.Namespace + "/" + each.Name + " has trafficDistribution " + distribution
		}
	}
	return ""
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
