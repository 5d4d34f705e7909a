// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestScenarios runs all scenarios on simulated clusters. test/controller runs them on real control planes.
func TestScenarios(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.Name, func(t *testing.T) {
			onNodes(t, each.Clusters, func(set *sim.ClusterSet) { each.On(set.Set) })
		})
	}
}

// onNodes runs a scenario on clusters that have nodes in two zones.
func onNodes(t *testing.T, names []string, run func(*sim.ClusterSet)) {
	sim.RunIdle(t, names, func(t *testing.T, set *sim.ClusterSet) {
		for _, c := range set.Clusters() {
			for _, zone := range []string{"-a", "-b"} {
				c.PutNode(c.Name+zone, c.Name+zone)
			}
		}
		run(set)
	})
}
