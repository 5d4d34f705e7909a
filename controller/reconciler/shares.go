// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// mostImportIPs is the number of Services that Kubernetes supports.
const mostImportIPs = 10_000

// maxImportIPs returns how many cluster IPs imports may have: half of the smallest range of Services, at most mostImportIPs.
func maxImportIPs(ranges []netip.Prefix) int {
	most := mostImportIPs
	for _, each := range ranges {
		most = min(most, 1<<min(30, each.Addr().BitLen()-each.Bits())/2)
	}
	return most
}

// admitExisting admits the existing imports. Call it before any other service is admitted, but after the members are
// known: an import is charged to the first of its members that has room.
func admitExisting(ips *limits.IPs, own string, imports []*v1beta1.ServiceImport) {
	for _, existing := range imports {
		var wanted []string
		for _, status := range existing.Status.Clusters {
			wanted = append(wanted, status.Cluster)
		}
		if export.IsManaged(existing) && len(existing.Spec.IPs) > 0 && !slices.Contains(wanted, own) {
			ips.Admit(types.NamespacedName{Namespace: existing.Namespace, Name: existing.Name}, wanted, true)
		}
	}
}

// mergeWithin merges within the members' shares of cluster IPs. An existing IP, or an IP for a service that the local
// cluster exports, is never refused. refused reports that the import needs an IP and gets none.
func mergeWithin(ips *limits.IPs, observed merge.Observed, contributions []merge.Contribution) (result merge.Result, refused bool) {
	var wanted []string
	for _, contribution := range contributions {
		// An absent view keeps an import, and asks for none.
		if !contribution.View.Absent() || observed.ServiceImport != nil {
			wanted = append(wanted, contribution.View.Cluster)
		}
	}
	result = merge.Merge(observed, contributions)
	exists := observed.ServiceImport != nil && len(observed.ServiceImport.Spec.IPs) > 0
	if result.DerivedService == nil && !exists || slices.Contains(wanted, observed.Cluster) ||
		observed.ServiceImport != nil && !export.IsManaged(observed.ServiceImport) {
		wanted = nil // it needs no IP from a member's share
	}
	if refused = !ips.Admit(observed.Service, wanted, exists); refused {
		_, most := ips.Use()
		observed.NoIP = fmt.Sprintf("The imports of %s used up their part of the %d cluster IPs for imports. "+
			"Withdraw other exports, or use headless services.", export.Listed(wanted), most)
		result = merge.Merge(observed, contributions)
	}
	return result, refused
}
