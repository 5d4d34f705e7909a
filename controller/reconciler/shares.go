// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// shares divides the cluster IPs of imports among the members. Services that the local cluster exports are not counted.
// It is safe for concurrent use for different services.
type shares struct {
	*limits.IPs
	load    sync.Once  // of the imports that exist
	setting sync.Mutex // held by setMembers
}

// setMembers sets the members that a function lists. Calls from several goroutines take turns: the last one has the newest.
func (s *shares) setMembers(list func() []*member.Member) {
	s.setting.Lock()
	defer s.setting.Unlock()
	var members []string
	for _, m := range list() {
		members = append(members, m.Cluster())
	}
	s.SetMembers(members)
}

// LimitIPs bounds the imports of all members together that have a cluster IP. It is to be called before the members run.
func (r *Reconciler) LimitIPs(ips int) {
	r.shares = &shares{IPs: limits.NewIPs(ips)}
}

// loadImports admits the imports that exist, before any other service. Only the first call has an effect.
func (s *shares) loadImports(own string, imports func() []*v1beta1.ServiceImport) {
	s.load.Do(func() {
		for _, existing := range imports() {
			var wanted []string
			for _, status := range existing.Status.Clusters {
				wanted = append(wanted, status.Cluster)
			}
			if export.IsManaged(existing) && len(existing.Spec.IPs) > 0 && !slices.Contains(wanted, own) {
				s.Admit(types.NamespacedName{Namespace: existing.Namespace, Name: existing.Name}, wanted, true)
			}
		}
	})
}

// mergeWithin merges within the shares of the members. An IP that exists, and one of a service that the local cluster
// exports, is never refused. refused reports that the import needs an IP and gets none.
func (s *shares) mergeWithin(observed merge.Observed, contributions []merge.Contribution) (result merge.Result, refused bool) {
	var wanted []string
	for _, contribution := range contributions {
		// An absent view keeps an import, and asks for none.
		if !contribution.View.Absent() || observed.ServiceImport != nil {
			wanted = append(wanted, contribution.View.Cluster)
		}
	}
	result = merge.Merge(observed, contributions)
	exists := observed.ServiceImport != nil && len(observed.ServiceImport.Spec.IPs) > 0 ||
		observed.DerivedService != nil && export.IsDerivedFor(observed.DerivedService, observed.Service.Name)
	if result.DerivedService == nil && !exists || slices.Contains(wanted, observed.Cluster) ||
		observed.ServiceImport != nil && !export.IsManaged(observed.ServiceImport) {
		wanted = nil // it needs no IP, or not of a member's share
	}
	if refused = !s.Admit(observed.Service, wanted, exists); refused {
		_, most := s.Use()
		observed.NoIP = fmt.Sprintf("The imports of %s used up their part of the %d cluster IPs for imports. "+
			"Withdraw other exports, or use headless services.", strings.Join(wanted, ", "), most)
		result = merge.Merge(observed, contributions)
	}
	return result, refused
}
