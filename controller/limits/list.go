// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"maps"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

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
// slices. It is to be offered all slices, and then either noted or, if it failed, abandoned.
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
	counts := weight.atLeast(before)
	l.of.mu.Lock() // the account may be closed meanwhile
	limit := l.of.exceeds(&l.tally, service, counts, slice)
	l.of.mu.Unlock()
	if limit == "" {
		of.slices, of.weight = append(of.slices, export.Pack(slice)), weight
		l.taken[service] = of
		l.set(service, counts)
		return
	}
	delete(l.taken, service)
	l.set(service, before)
	if _, told := l.excess[limit]; !told {
		l.excess[limit] = service.String()
	}
	if imported || limit == SliceBytes {
		l.withheld[service] = before
	} else {
		l.full = true
	}
}

// Slices returns the selected slices in no order.
func (l *List) Slices() []*export.Packed {
	var all []*export.Packed
	for _, of := range l.taken {
		all = append(all, of.slices...)
	}
	return all
}

// Abandon ends a list that failed: the memory that it claimed is free again.
func (a *Account) Abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(func() {})
}

// Note takes over what a complete list left out. Its slices are about to be visible: see Commit.
func (a *Account) Note(list *List) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed = list
	a.excess = maps.Clone(list.excess)
	a.truncated++
	if len(list.excess) == 0 {
		a.truncated = 0
	}
}

// Withheld returns the services that the noted list left out although the member exports them. The map is shared.
func (a *Account) Withheld() map[types.NamespacedName]Weight {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listed == nil {
		return nil
	}
	return a.listed.withheld
}

// Commit counts the list that was noted, whose slices are visible now, and returns the services that were withheld.
func (a *Account) Commit() (withheld map[types.NamespacedName]Weight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list, kept := a.listed, a.kept
	a.listed, a.tally = nil, list.tally
	a.count(func() {
		a.tally = tallyOf(list.withheld)
		for service, of := range list.taken {
			a.set(service, of.weight)
			a.keep(service, kept[service])
		}
	})
	withheld, a.withheld = a.withheld, list.withheld
	return withheld
}
