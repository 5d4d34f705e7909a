// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

var networkChecks = []Check{
	{
		Name: "pod-ranges", About: "no two clusters have overlapping ranges of pods",
		skip: func(s *Set, c *Cluster) string {
			return s.uncompared(c, "ranges of pods", (*Cluster).podCIDRs)
		}, run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.others(c) {
				if one, two, ok := overlap(c.podCIDRs(), other.podCIDRs()); ok {
					found = append(found, wrong(
						"Give the nodes of one of the two another range: a node keeps its own for life, so that this takes new nodes.", "Its range of pods %s overlaps %s of %s, by its nodes' spec.podCIDRs: pods of the two cannot reach each other. Ignore this if your CNI assigns other ranges.", one, two, other.Context))
				}
			}
			return found
		},
	},
	{
		Name: "service-ranges", About: "no cluster has pods where another has Services",
		skip: func(s *Set, c *Cluster) string {
			return s.uncompared(c, "ranges of Services",
				func(other *Cluster) []netip.Prefix { return other.ServiceCIDRs })
		}, run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.others(c) {
				if one, two, ok := overlap(c.podCIDRs(), other.ServiceCIDRs); ok {
					found = append(found, wrong(
						"Give one of the two another range: that of Services is in its ServiceCIDRs.",
						"Its range of pods %s, by its nodes' spec.podCIDRs, overlaps the range of Services %s of %s: these pods cannot be reached from there. Ignore this if your CNI assigns other ranges.", one, two, other.Context))
				}
			}
			return found
		},
	},
	ofMembers("member-ranges", "the annotation cidrs of a member has the ranges of its pods",
		func(s *Set, c *Cluster, m *facts.Member) []problem {
			if len(m.CIDRs) == 0 || m.Secret == nil {
				return nil
			}
			for _, other := range s.others(c) {
				if other.ID != m.ID {
					continue
				}
				var lacking []string
				for _, pods := range other.podCIDRs() {
					if !slices.ContainsFunc(m.CIDRs, func(p netip.Prefix) bool {
						return p.Bits() <= pods.Bits() &&
							p.Contains(pods.Addr())
					}) {
						lacking = append(lacking, pods.String())
					}
				}
				if len(lacking) > 0 {
					return []problem{wrong(c.confine(m, strings.Join(append(texts(m.CIDRs), lacking...), ",")),
						"Secret %s confines %s to %s, and it has pods in %s: their endpoints are refused.",
						m.Secret.Name,
						m.ID, strings.Join(texts(m.CIDRs), ","), strings.Join(lacking, ","))}
				}
			}
			return nil
		}),
	{
		Name: "node-version", About: "the nodes' kube-proxy is 1.26 or newer",
		run: func(_ *Set, c *Cluster) (found []problem) {
			for i := range c.Nodes {
				kubelet := c.Nodes[i].Status.NodeInfo.KubeletVersion
				if parsed, err := version.ParseGeneric(kubelet); err == nil && parsed.Major() > 0 &&
					parsed.LessThan(oldestProxy) {
					found = append(found, odd("Upgrade the node to 1.26 or newer.",
						"Node %s is %s: its kube-proxy may go on sending traffic to a silent cluster.", c.Nodes[i].Name,
						kubelet))
				}
			}
			return found
		},
	},
	{
		Name: "zones", About: "where near endpoints are wanted first, all nodes say in which zone they are",
		run: func(s *Set, c *Cluster) (found []problem) {
			wanted := c.wantsZones(s.Zone)
			if wanted == "" {
				return nil
			}
			for i := range c.Nodes {
				if c.Nodes[i].Labels[corev1.LabelTopologyZone] == "" {
					found = append(found, odd(c.kubectl("label node %s %s=<zone that it is in>", c.Nodes[i].Name,
						corev1.LabelTopologyZone),
						"Node %s does not say in which zone it is, so that clients on it use near endpoints no sooner than others, although %s.", c.Nodes[i].Name, wanted))
				}
			}
			return found
		},
	},
	{Name: "preferences", About: "what services prefer can be done", run: func(s *Set, c *Cluster) (found []problem) {
		for i := range c.Imports {
			prefer := conditionOf(c.Imports[i].Status.Conditions, merge.ConditionPreferCluster)
			if prefer == nil || prefer.Status != metav1.ConditionFalse || prefer.Reason == merge.ReasonNoZones {
				continue // the nodes are looked at above
			}
			found = append(found, odd(s.prefer(c, &c.Imports[i]), "%s: %s", nameOf(&c.Imports[i]), prefer.Message))
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

// uncompared returns why the ranges of a cluster's pods cannot be compared with
// ranges of any other cluster, or an empty string if they can.
func (s *Set) uncompared(c *Cluster, what string, ranges func(*Cluster) []netip.Prefix) string {
	others := s.others(c)
	switch {
	case len(others) == 0:
		return "There is no other cluster to compare with: name all clusters of the set with --contexts."
	case len(c.podCIDRs()) == 0:
		return "Its nodes have no spec.podCIDRs, because the CNI assigns other ranges: compare the ranges of the CNI with the " + what + " of the other clusters."
	case !slices.ContainsFunc(others, func(other *Cluster) bool { return len(ranges(other)) > 0 }):
		return "The " + what + " of the other clusters are unknown: compare them with " +
			strings.Join(texts(c.podCIDRs()), ", ") + "."
	}
	return ""
}

// wantsZones says who wants to know the zones of this cluster's nodes, nothing
// where nobody does.
func (c *Cluster) wantsZones(zone string) string {
	if corefile := c.parsed(); corefile != nil && slices.Equal(corefile.Option(zone, "prefer"), []string{"zone"}) {
		return "the Corefile has `prefer zone`"
	}
	for i := range c.Imports {
		each := &c.Imports[i]
		if !export.IsManaged(each) || each.Spec.Type != v1beta1.ClusterSetIP {
			continue
		}
		distribution := ptr.Deref(each.Spec.TrafficDistribution, "")
		wish, _ := locality.PreferenceOf(distribution, "", "") // the condition tells of the rest
		prefer := conditionOf(each.Status.Conditions, merge.ConditionPreferCluster)
		switch {
		case prefer != nil && prefer.Reason != merge.ReasonUnknownPreference:
			return nameOf(each) + " prefers its own cluster"
		case wish.Zone:
			return nameOf(each) + " has trafficDistribution " + distribution
		}
	}
	return ""
}

// prefer is the command that takes back a preference that cannot be met.
func (s *Set) prefer(c *Cluster, serviceImport *v1beta1.ServiceImport) string {
	service := types.NamespacedName{Namespace: serviceImport.Namespace, Name: serviceImport.Name}
	oldest := merge.Explain(facts.Contributions(c.Sources[service])).Precedence
	if serviceImport.Annotations[export.AnnotationPrefer] == "" || len(oldest) == 0 {
		return c.chart("upgrade", "--reset-then-reuse-values --set controller.prefer=none")
	}
	return fmt.Sprintf(`kubectl --context %s -n %s patch serviceexport %s --type merge -p '{"spec":{"exportedAnnotations":{"%s":"none"}}}'`,
		s.contextOf(oldest[0]), service.Namespace, service.Name, export.AnnotationPrefer)
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
