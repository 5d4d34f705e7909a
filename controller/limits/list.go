// SPDX-License-Identifier: Apache-2.0

package limits

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A List selects the slices of one list of a member that the limits allow, in bounded memory: whole services, up to the
// first new one that exceeds a limit. Imported services have their place beforehand, and are never evicted: one that
// outgrows a limit is withheld as it is.
type List struct {
	of       *Account
	imported map[types.NamespacedName]Weight
	taken    map[types.NamespacedName]*taken
	tally
	withheld map[types.NamespacedName]Weight
	excess   Excess
	full     bool
}

type taken struct {
	slices []*export.Packed
	weight Weight
}

// List begins a list. imported are the services that are imported from the member, with the weight of the copies of their
// slices. It is to be offered all slices, and then either committed or, if it failed, abandoned.
func (a *Account) List(imported map[types.NamespacedName]Weight) *List {
	select {
	case <-a.relist:
	default:
	}
	return &List{
		of: a, imported: imported, taken: map[types.NamespacedName]*taken{}, tally: tallyOf(imported),
		withheld: map[types.NamespacedName]Weight{}, excess: Excess{},
	}
}

// Offer selects or refuses a slice of a service.
func (l *List) Offer(service types.NamespacedName, slice *discoveryv1.EndpointSlice) {
	before, imported := l.imported[service]
	of := l.taken[service]
	if _, withheld := l.withheld[service]; withheld || of == nil && !imported && l.full {
		return
	}
	if of == nil {
		of = &taken{}
	}
	weight := of.weight.Plus(WeightOf(slice))
	is := counted{weight, before}
	l.of.mu.Lock() // the account may be closed meanwhile
	limit := l.of.exceeds(&l.tally, service, is, slice)
	l.of.mu.Unlock()
	if limit == "" {
		of.slices, of.weight = append(of.slices, export.Pack(slice)), weight
		l.taken[service] = of
		l.set(service, is)
		return
	}
	delete(l.taken, service)
	l.set(service, counted{slices: before})
	if _, told := l.excess[limit]; !told {
		l.excess[limit] = service.String()
	}
	if imported || limit == SliceBytes {
		l.withheld[service] = before
	} else {
		l.full = true
	}
}

// Slices returns the selected slices, each an export.Packed, in no order.
func (l *List) Slices() (all []any) {
	for _, of := range l.taken {
		for _, slice := range of.slices {
			all = append(all, slice)
		}
	}
	return all
}

// Services returns the services that the list has, also those that are withheld, in no order.
func (l *List) Services() []types.NamespacedName {
	return sets.KeySet(l.taken).Union(sets.KeySet(l.withheld)).UnsortedList()
}

// Abandon ends a list that failed: the memory that it claimed is free again.
func (a *Account) Abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(func() {})
}

// Commit counts a complete list, and returns the services that were withheld before.
func (a *Account) Commit(list *List) (withheld map[types.NamespacedName]Weight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.services
	a.excess, a.tally = list.excess, list.tally
	a.truncated++
	if len(list.excess) == 0 {
		a.truncated = 0
	}
	a.count(func() {
		a.tally = tallyOf(list.withheld)
		for service, of := range list.taken {
			a.set(service, counted{of.weight, known[service].least})
		}
	})
	withheld, a.withheld = a.withheld, list.withheld
	return withheld
}
