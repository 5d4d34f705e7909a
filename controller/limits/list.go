// SPDX-License-Identifier: Apache-2.0

package limits

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A List selects the slices of one list of a member that the limits allow, in bounded memory: whole services. Imported services
// have their place beforehand and are never evicted: if one outgrows a limit, its slices are withheld and its copies stay.
type List struct {
	of *Store
	content
	excess Excess
}

// BeginList begins a list. imported has the services that are imported from the member, with the weight of their copies. Offer
// it all slices of the list, and call Show. The memory that a failed list claimed is free when the next one begins.
func (s *Store) BeginList(imported map[types.NamespacedName]Weight) *List {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold()
	return &List{of: s, content: placesOf(imported), excess: Excess{}}
}

// Offer selects or refuses a slice.
func (l *List) Offer(published *discoveryv1.EndpointSlice) {
	name := export.ServiceOf(published)
	of := l.services[name]
	if name.Name == "" || of.withheld {
		return
	}
	if len(of.slices) == 0 {
		of.weight, of.least = Weight{}, of.weight
	}
	is := sliceOf(published)
	if l.slices[is.name] != nil {
		return // no API server lists an object twice
	}
	l.of.mu.Lock() // Close may run meanwhile
	limit := l.of.admit(&l.content, of, is)
	l.of.mu.Unlock()
	if limit == "" {
		return
	}
	for _, each := range of.slices {
		delete(l.slices, each.name)
	}
	if _, told := l.excess[limit]; !told {
		l.excess[limit] = name.String()
	}
	if limit != Services {
		l.set(name, service{weight: of.least, withheld: true})
	}
}

// Services returns the services in the list, including the withheld ones, in no order.
func (l *List) Services() (all []types.NamespacedName) {
	for name, is := range l.services {
		if len(is.slices) > 0 || is.withheld {
			all = append(all, name)
		}
	}
	return all
}

// Show replaces the slices with those of a complete list, and returns the services that changed. They include the
// services that were withheld before, which may be gone.
func (s *Store) Show(list *List) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, changed := s.content, sets.Set[types.NamespacedName]{}
	s.content, s.excess = list.content, list.excess
	s.synced = true
	for name, is := range s.services {
		if len(is.slices) > 0 {
			is.least = before.services[name].least
			s.set(name, is)
		} else if !is.withheld {
			s.drop(name) // it is no longer published
		}
	}
	s.hold()
	for name, was := range before.services {
		if was.withheld {
			changed.Insert(name)
		}
	}
	for _, each := range [][2]content{{before, s.content}, {s.content, before}} {
		for name, is := range each[0].slices {
			if other := each[1].slices[name]; other == nil || other.service != is.service || !other.packed.Equal(is.packed) {
				changed.Insert(is.service)
			}
		}
	}
	return changed.UnsortedList()
}
