// SPDX-License-Identifier: Apache-2.0

package check

import "testing"

// TestRangesThatCannotBeCompared skips what nothing was compared in, and says
// what to do instead.
func TestRangesThatCannotBeCompared(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(east, west *Cluster)
		pods, services string // why the checks of east were skipped, empty if they were not
	}{
		"both are known": {func(_, _ *Cluster) {}, "", ""},
		"no ranges of its own": {
			func(east, _ *Cluster) { east.Nodes[0].Spec.PodCIDRs = nil },
			"Its nodes have no spec.podCIDRs, because the CNI assigns other ranges: compare the ranges of the CNI with the pod ranges of the other clusters.",
			"Its nodes have no spec.podCIDRs, because the CNI assigns other ranges: compare the ranges of the CNI with the Service ranges of the other clusters.",
		},
		"no ranges of the other": {
			func(_, west *Cluster) { west.Nodes, west.ServiceCIDRs = nil, nil },
			"The pod ranges of the other clusters are unknown: compare them with 10.64.0.0/24.",
			"The Service ranges of the other clusters are unknown: compare them with 10.64.0.0/24.",
		},
		"no other cluster": {
			func(east, west *Cluster) { west.UID = east.UID },
			"There is no other cluster to compare with: select all clusters of the set with --contexts.",
			"There is no other cluster to compare with: select all clusters of the set with --contexts.",
		},
	} {
		why := map[string]string{}
		for _, finding := range Run(newSet(test.change)) {
			if finding.Context == "east" && finding.Result == Skipped {
				why[finding.Check] = finding.Reason
			}
		}
		if why["pod-ranges"] != test.pods || why["service-ranges"] != test.services {
			t.Errorf("%s: got %q and %q", name, why["pod-ranges"], why["service-ranges"])
		}
	}
}
