// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
)

var networkChecks = []Check{
	ranges("pod-ranges", "pod ranges", func(c *Cluster) []netip.Prefix { return c.PodCIDRs }, "so their pods cannot reach each other",
		"Give one of the two clusters another pod range; nodes keep their ranges, so this takes new nodes."),
	ranges("service-ranges", "Service ranges", func(c *Cluster) []netip.Prefix { return c.ServiceCIDRs },
		"which cannot reach these pods", "Change one of the two ranges; the Service range is in the ServiceCIDRs."),
}

// ranges is a check that the pod ranges of a cluster do not overlap ranges of another, which has an effect.
func ranges(name, what string, of func(*Cluster) []netip.Prefix, effect, fix string) Check {
	return Check{
		Name: name, About: "pod ranges do not overlap " + what + " of other clusters",
		skip: func(s *Set, c *Cluster) string {
			others := s.others(c)
			switch {
			case len(others) == 0:
				return "There is no other cluster to compare with: select all clusters of the set with --contexts."
			case len(c.PodCIDRs) == 0:
				return "Its nodes have no spec.podCIDRs, because the CNI assigns other ranges: compare the ranges of the CNI with " +
					"the " + what + " of the other clusters."
			case !slices.ContainsFunc(others, func(other *Cluster) bool { return len(of(other)) > 0 }):
				return fmt.Sprintf("The %s of the other clusters are unknown: compare them with %s.", what, c.PodCIDRs)
			}
			return ""
		},
		run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.others(c) {
				for _, one := range c.PodCIDRs {
					theirs := of(other)
					if at := slices.IndexFunc(theirs, one.Overlaps); at >= 0 {
						found = append(found, wrong(fix, "Its pod range %s (spec.podCIDRs of the nodes) overlaps %s, one of the %s of %s, %s. "+
							"Ignore this if your CNI assigns other ranges.", one, theirs[at], what, other.Context, effect))
						break
					}
				}
			}
			return found
		},
	}
}

// others are the clusters that a cluster can be compared with.
func (s *Set) others(c *Cluster) []*Cluster {
	return slices.DeleteFunc(slices.Clone(s.Clusters), func(other *Cluster) bool {
		return other == c || !reached(other) || same(other, c)
	})
}

// prefixes parses prefixes, and ignores invalid ones.
func prefixes(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out = append(out, prefix.Masked())
		}
	}
	return out
}
