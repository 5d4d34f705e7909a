// SPDX-License-Identifier: Apache-2.0

package scenario

// All lists the scenarios.
var All = []Scenario{
	{"a member is drained", three, steady(drains)},
	{"a member is silent", three, silent.Run},
	{"a member is cut off from all", three, steady(cutOff)},
	{"nobody is heard", three, fault(nobodyHeard)},
	{"clocks are wrong", three, wrongClocks.Run},
	{"a controller stops", three, stopped.Run},

	{"a member says what is not true", three, fault(lies)},
	{"addresses of a member are confined", three, fault(confined)},
	{"a member has addresses of its reader", two, of(ownAddresses)},
	{"most exports are lost", three, fault(exportsLost)},
	{"a cluster is rebuilt", []string{"east", "west", "north", "south"}, rebuilt},
	{"Leases are edited and deleted", three, steady(leases)},
	{"the Lease of the leader is taken", two, of(leaderLease)},
	{"an export is for chosen clusters", three, chosenClusters},
	{"contributions are refused", three, refusedContributions},
	{"a member is of another set", two, of(otherSet)},
	{"CRDs are deleted", three, fault(removal)},
	{"CRDs are upgraded", []string{"west", "dual"}, of(upgrade)},

	{"clusters are in different networks", three, fault(networks)},
	{"services are headless or behind load balancers in another network", two, of(otherNetwork)},
	{"clusters are outside of the allowed clusters", three, fault(allowedClusters)},
	{"allowed clusters are lifted", two, of(allowedClustersLifted)},
	{"SRV answers have an order and weights", three, fault(traffic)},
	{"imports prefer their cluster", two, of(preferCluster)},
	{"a member is over its limits", two, of(overItsLimits)},
	{"nothing is written at rest", two, of(quiet)},
	{"an export has no Service", two, of(noService)},
	{"types conflict", two, of(conflict)},
	{"a namespace is denied", two, of(deniedNamespace)},
	{"a Service has two families", []string{"east", "dual"}, dualStack},

	{"a derived Service keeps its IP", two, of(sameIP)},
	{"a time does not decode", two, of(unreadable)},
	{"an import is collected", two, of(collected)},
	{"objects of others are left alone", two, of(othersObjects)},
	{"a published slice is held", two, of(heldSlice)},
	{"imports of others are adopted", two, of(adoption)},

	{"a Secret has no kubeconfig", three, fault(badSecret)},
	{"a Secret is for another server", three, fault(wrongServer)},
}
