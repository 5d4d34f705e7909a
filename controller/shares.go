// SPDX-License-Identifier: Apache-2.0

package controller

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

// maxImportIPs is the number of cluster IPs that imports may have: the one
// configured, else half of the range of Services, else, of a range that is not
// known, DefaultMaxImportIPs.
func maxImportIPs(configured, serviceIPs int) int {
	switch {
	case configured > 0:
		return configured
	case serviceIPs > 0:
		return serviceIPs / 2
	}
	return DefaultMaxImportIPs
}

// shares divides the imports, and the cluster IPs of imports, among the
// members. Services that the local cluster exports are not counted. It is safe
// for concurrent use; of one service by one goroutine at a time.
type shares struct {
	// enqueue is called with services that were refused and have room now.
	enqueue func(types.NamespacedName)
	// limited is called when the first service of a member is refused, and with
	// no service when none is any more.
	limited func(cluster string, limit export.Limit, service *types.NamespacedName)

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

func newShares(imports, ips int, enqueue func(types.NamespacedName), limited func(string, export.Limit, *types.NamespacedName)) *shares {
	kind := func(most int) *share {
		return &share{Claims: budget.NewClaims(most), most: most, told: map[string]bool{}}
	}
	return &shares{
		enqueue: enqueue,
		limited: limited,
		kinds:   map[export.Limit]*share{export.LimitImports: kind(imports), export.LimitClusterIPs: kind(ips)},
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

// load admits the imports that exist, before any other service. It does so
// once.
func (s *shares) load(own string, imports func() []*v1beta1.ServiceImport) {
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
		if !export.IsManaged(existing) || len(wanted) == 0 || slices.Contains(wanted, own) {
			continue
		}
		service := types.NamespacedName{Namespace: existing.Namespace, Name: existing.Name}
		s.kinds[export.LimitImports].Admit(service, wanted, true)
		if len(existing.Spec.IPs) > 0 {
			s.kinds[export.LimitClusterIPs].Admit(service, wanted, true)
		}
	}
}

// admit reports whether a service that the members want has its place; exists
// tells that it has one already. No members means that it needs none.
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

// settled reports whose services are refused, and has one looked at that was
// refused and has room now; the next follows when that one is admitted.
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
			s.limited(member, limit, nil)
			continue
		}
		kind.told[member] = true
		s.limited(member, limit, &first)
	}
	if next, any := kind.Next(); any {
		s.enqueue(next)
	}
}

// release forgets a service of which nothing is imported.
func (s *shares) release(service types.NamespacedName) {
	for limit := range s.kinds {
		s.admit(limit, service, nil, false)
	}
}

// mergeWithin merges within what the members may have. Imports that exist, and
// those that the local cluster exports, are never refused.
func (r *reconciler) mergeWithin(observed merge.Observed, contributions []merge.Contribution) merge.Result {
	var wanted []string
	for _, contribution := range contributions {
		// What is absent keeps an import, and asks for none.
		if !contribution.View.Absent() || observed.ServiceImport != nil {
			wanted = append(wanted, contribution.View.Cluster)
		}
	}
	if slices.Contains(wanted, r.cluster) || observed.ServiceImport != nil && !export.IsManaged(observed.ServiceImport) {
		wanted = nil
	}
	if !r.shares.admit(export.LimitImports, observed.Service, wanted, observed.ServiceImport != nil) {
		wanted, contributions = nil, nil
	}
	result := merge.Merge(observed, contributions)
	exists := observed.ServiceImport != nil && len(observed.ServiceImport.Spec.IPs) > 0 ||
		observed.DerivedService != nil && export.IsDerivedFor(observed.DerivedService, observed.Service.Name)
	if result.DerivedService == nil && !exists {
		wanted = nil // it needs no IP
	}
	if !r.shares.admit(export.LimitClusterIPs, observed.Service, wanted, exists) {
		slices.Sort(wanted)
		observed.NoIP = fmt.Sprintf("The imports of %s used up their part of the %d cluster IPs for imports (--max-import-ips). Raise it, or withdraw other exports.",
			strings.Join(wanted, ", "), r.shares.kinds[export.LimitClusterIPs].most)
		result = merge.Merge(observed, contributions)
	}
	return result
}

// limited has a member report that a service of it is refused, or that none is.
func (r *reconciler) limited(cluster string, limit export.Limit, service *types.NamespacedName) {
	if m := r.members.Get(cluster); m != nil {
		m.SetLimited(limit, service)
	}
}
