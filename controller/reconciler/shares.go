// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/budget"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// A shareholder is notified by shares, whose lock is held.
type shareholder interface {
	// enqueue is called with a service that was refused and has room now.
	enqueue(service types.NamespacedName)
	// limited is called when the first service of a member is refused, and with nil when no service of the member is
	// refused any more.
	limited(cluster string, limit export.Limit, service *types.NamespacedName)
}

// shares divides the imports, and the cluster IPs of imports, among the members. Services that the local cluster
// exports are not counted. It is safe for concurrent use for different services.
type shares struct {
	holder shareholder

	mu      sync.Mutex
	loaded  bool
	members []string
	kinds   map[export.Limit]*share
}

// share is one of the budgets.
type share struct {
	*budget.Claims
	most int
	told map[string]bool // by member
}

func newShares(imports, ips int, holder shareholder) *shares {
	kind := func(most int) *share {
		return &share{Claims: budget.NewClaims(most), most: most, told: map[string]bool{}}
	}
	return &shares{
		holder: holder,
		kinds:  map[export.Limit]*share{export.LimitImports: kind(imports), export.LimitClusterIPs: kind(ips)},
	}
}

// setMembers replaces the members.
func (s *shares) setMembers(members []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = members
	for limit, kind := range s.kinds {
		kind.SetMembers(members)
		clear(kind.told) // a member may have been replaced
		s.settled(limit)
	}
}

// load admits the imports that exist, before any other service. Only the first call has an effect.
func (s *shares) load(own string, set export.Set, imports func() []*v1beta1.ServiceImport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return
	}
	s.loaded = true
	for _, existing := range imports() {
		var wanted []string
		for _, status := range existing.Status.Clusters {
			wanted = append(wanted, status.Cluster)
		}
		if !set.Manages(existing) || len(wanted) == 0 || slices.Contains(wanted, own) {
			continue
		}
		service := types.NamespacedName{Namespace: existing.Namespace, Name: existing.Name}
		s.kinds[export.LimitImports].Admit(service, wanted, true)
		if len(existing.Spec.IPs) > 0 {
			s.kinds[export.LimitClusterIPs].Admit(service, wanted, true)
		}
	}
}

// admit reports whether a service that the wanted members export is admitted; exists is set if it was admitted before.
// Without members it needs no share.
func (s *shares) admit(limit export.Limit, service types.NamespacedName, wanted []string, exists bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.settled(limit)
	if len(wanted) == 0 {
		s.kinds[limit].Release(service)
		return true
	}
	return s.kinds[limit].Admit(service, wanted, exists)
}

// settled reports the members whose services are refused, and enqueues one refused service that has room now. The next
// follows when it is admitted.
func (s *shares) settled(limit export.Limit) {
	kind := s.kinds[limit]
	if len(kind.told) == 0 && !kind.Waiting() {
		return
	}
	for _, member := range s.members {
		first, refused := kind.Refused(member)
		if refused == kind.told[member] {
			continue
		}
		if !refused {
			delete(kind.told, member)
			s.holder.limited(member, limit, nil)
			continue
		}
		kind.told[member] = true
		s.holder.limited(member, limit, &first)
	}
	if next, any := kind.Next(); any {
		s.holder.enqueue(next)
	}
}

// release ends the share of a service that is not imported.
func (s *shares) release(service types.NamespacedName) {
	for limit := range s.kinds {
		s.admit(limit, service, nil, false)
	}
}

// mergeWithin merges within the shares of the members. Imports that exist, and those that the local cluster exports,
// are never refused.
func (s *shares) mergeWithin(observed merge.Observed, contributions []merge.Contribution) merge.Result {
	var wanted []string
	for _, contribution := range contributions {
		// An absent view keeps an import, and asks for none.
		if !contribution.View.Absent() || observed.ServiceImport != nil {
			wanted = append(wanted, contribution.View.Cluster)
		}
	}
	if slices.Contains(wanted, observed.Cluster) || observed.ServiceImport != nil &&
		!observed.Set.Manages(observed.ServiceImport) {
		wanted = nil
	}
	if !s.admit(export.LimitImports, observed.Service, wanted, observed.ServiceImport != nil) {
		wanted, contributions = nil, nil
	}
	result := merge.Merge(observed, contributions)
	exists := observed.ServiceImport != nil && len(observed.ServiceImport.Spec.IPs) > 0 ||
		observed.DerivedService != nil && observed.Set.IsDerivedFor(observed.DerivedService, observed.Service.Name)
	if result.DerivedService == nil && !exists {
		wanted = nil // it needs no IP
	}
	if !s.admit(export.LimitClusterIPs, observed.Service, wanted, exists) {
		slices.Sort(wanted)
		observed.NoIP = fmt.Sprintf("The imports of %s used up their part of the %d cluster IPs for imports. "+
			"Withdraw other exports, or use headless services.",
			strings.Join(wanted, ", "), s.kinds[export.LimitClusterIPs].most)
		result = merge.Merge(observed, contributions)
	}
	return result
}

// limited implements shareholder.
func (r *Reconciler) limited(cluster string, limit export.Limit, service *types.NamespacedName) {
	if m := r.Members.Get(cluster); m != nil {
		m.SetLimited(limit, service)
	}
}
