// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// All are the scenarios.
var All = []Scenario{
	{"a member is drained", three, steady(drains)},
	{"a drained member is silent", three, steady(drainedAndSilent)},
	{"a member is silent", three, silent.Run},
	{"a member is not heard", three, steady(notHeard(false))},
	{"a member is cut off from all", three, steady(notHeard(true))},
	{"a member is slow", three, steady(slow)},
	{"nothing gets to a member", three, steady(oneWay)},
	{"a member changes while it is silent", three, fault(changesMeanwhile)},
	{"nobody is heard", three, steady(nobodyHeard)},
	{"a member flaps", three, steady(flaps)},
	{"a silent member is gone after a time", three, fault(goneAfter)},
	{"a silent member leaves", three, fault(leavesWhileSilent)},
	{"clocks are wrong", three, steady(wrongClocks)},
	{"a controller stops", three, steady(stoppedController)},

	{"a member has bad addresses", three, lies(badAddresses)},
	{"a member has bad endpoints and ports", three, lies(badParts)},
	{"a member has bad snapshots", three, lies(badSnapshots)},
	{"a member has slices of others", three, lies(badIdentities)},
	{"a member has a slice without measure", three, lies(tooLarge)},
	{"events of a member are broken", three, steady(brokenEvents)},
	{"addresses of a member are confined", three, fault(confined)},
	{"most exports are lost", three, fault(exportsLost)},
	{"another cluster has the id of a member", three, fault(anotherCluster)},
	{"a cluster is rebuilt", []string{"east", "west", "north", "south"}, rebuilt},
	{"Leases are edited and deleted", three, steady(leases)},
	{"the Lease of the leader is taken", two, of(leaderLease)},
	{"an export is for chosen clusters", three, chosenClusters},
	{"contributions are refused", three, refusedContributions},
	{"a member is of another set", two, of(otherSet)},
	{"CRDs are deleted", three, fault(removal)},
	{"CRDs are upgraded", []string{"west", "dual"}, of(upgrade)},

	{"the life of a service", two, of(life)},
	{"endpoints are written by hand", two, of(handWrittenEndpoints)},
	{"Services have node ports and load balancers", two, of(nodePortAndLoadBalancer)},
	{"clusters are in different networks", three, fault(networks)},
	{"a headless service is in another network", two, of(headlessNetworks)},
	{"services are behind load balancers in another network", two, of(balancers)},
	{"clusters are used in an order", three, fault(tiers)},
	{"clusters are outside of a border", three, fault(border)},
	{"a region is a border", three, fault(region)},
	{"clusters have weights", three, fault(weighted)},
	{"SRV answers have an order and weights", three, fault(inSRV)},
	{"a cluster is overloaded for a service", three, fault(overloaded)},
	{"imports prefer their cluster", two, of(preferCluster)},
	{"imports prefer their cluster by a flag", two, of(preferByFlag)},
	{"a preference outlives a Service", two, of(preferenceStays)},
	{"a member is over its limits", two, of(overItsLimits)},
	{"a member is full of slices", two, of(hostile)},
	{"nothing is written at rest", two, of(quiet)},
	{"members come and go", two, of(membership)},
	{"an export has no Service", two, of(noService)},
	{"types conflict", two, of(conflict)},
	{"a Service changes its type", two, of(changeOfType)},
	{"namespaces come and go", two, of(namespaces)},
	{"a namespace is denied", two, of(deniedNamespace)},
	{"a Service has two families", []string{"east", "dual"}, dualStack},
	{"a derived Service is refused", two, of(refused)},

	{"a derived Service keeps its IP", two, of(sameIP)},
	{"imports are deleted by force", two, of(deletions)},
	{"an import is collected while a member is silent", two, of(collectedWhileSilent)},
	{"objects of others are left alone", two, of(othersObjects)},
	{"a time does not decode", two, of(unreadable)},
	{"imports of others are adopted", two, of(adoption)},
	{"imports of Karmada are adopted", two, of(karmada)},
	{"global services of Cilium are exported", two, of(globalServices)},

	{
		"a Secret has no kubeconfig", three,
		badSecret(func(secret *corev1.Secret) { secret.Data[member.KubeconfigKey] = []byte("{") }),
	},
	{"a Secret is empty", three, badSecret(func(secret *corev1.Secret) { secret.Data = nil })},
	{"a Secret would read a file", three, badSecret(readsFile)},
	{"a Secret has bad ranges", three, badSecret(badRanges)},
	{"a Secret has another label", three, fault(relabelled)},
	{"a Secret is for another server", three, fault(wrongServer)},
	{"a credential is rotated", two, of(rotation)},
	{"a member hangs", two, of(hangs)},
	{"a member is given by a flag", two, of(static)},
}
