// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestScenarios runs all scenarios on real control planes.
func TestScenarios(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.Name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			new(realBed).run(t, each)
		})
	}
}

// TestContractScenarios runs the scenarios in which the simulation may differ most from a real server: a partition, the
// fencing of the leader, and other versions of the CRDs.
func TestContractScenarios(t *testing.T) {
	names := []string{"a member is cut off from all", "the Lease of the leader is taken", "CRDs are upgraded"}
	for _, each := range scenario.All {
		if slices.Contains(names, each.Name) {
			t.Run(each.Name, func(t *testing.T) { new(realBed).run(t, each) })
			names = slices.DeleteFunc(names, func(name string) bool { return name == each.Name })
		}
	}
	if len(names) > 0 {
		t.Errorf("there is no scenario %q", names)
	}
}
