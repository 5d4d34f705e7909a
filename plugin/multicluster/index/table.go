// SPDX-License-Identifier: Apache-2.0

package index

import (
	"hash/maphash"
	"slices"
	"strings"
)

// table is a persistent hash map: a copy that is edited shares all but the pages that change with the original, which
// stays as it was. Reading it takes no lock, and mostly touches one slot and the octets of its key.
type table[V any] struct {
	seed   maphash.Seed
	pages  []*page[V] // a power of two
	len    int
	edited []bool // which pages are copies that are changed in place; nil unless the list of pages is such a copy
}

// page is a part of the slots. It is copied when one of them changes.
type page[V any] [pageSlots]slot[V]

const pageSlots = 64

// slot holds the entries whose keys hash alike. Its first one has an empty key if there is none.
type slot[V any] struct {
	key   string
	value V
	next  *slot[V] // shared, never changed
}

func newTable[V any]() table[V] {
	return table[V]{seed: maphash.MakeSeed(), pages: []*page[V]{new(page[V])}}
}

// done returns the table with nothing left to be changed in place. It must be called between changes and sharing.
func (t table[V]) done() table[V] {
	t.edited = nil
	return t
}

// slot returns the page of a key and its slot there.
func (t *table[V]) slot(key string) (p, in int) {
	hash := maphash.String(t.seed, key)
	return int(hash / pageSlots % uint64(len(t.pages))), int(hash % pageSlots)
}

// get returns the value of the key.
func (t *table[V]) get(key string) (value V, ok bool) {
	p, in := t.slot(key)
	for s := &t.pages[p][in]; s != nil; s = s.next {
		if s.key == key && key != "" {
			return s.value, true
		}
	}
	return value, false
}

// getFold is get for a key in any case. The table has keys in lower case.
func (t *table[V]) getFold(key string) (value V, ok bool) {
	if value, ok = t.get(key); ok {
		return value, ok
	}
	if lower := strings.ToLower(key); lower != key {
		return t.get(lower)
	}
	return value, false
}

// reserve makes room for so many entries.
func (t *table[V]) reserve(entries int) {
	pages := len(t.pages)
	for pages*pageSlots < entries {
		pages *= 2
	}
	if pages == len(t.pages) {
		return
	}
	larger := table[V]{seed: t.seed, pages: make([]*page[V], pages), edited: make([]bool, pages)}
	for i := range pages {
		larger.pages[i], larger.edited[i] = new(page[V]), true
	}
	for _, e := range t.all() {
		larger.put(e.key, e.value)
	}
	*t = larger
}

// edit returns the slot of a key, to be changed in place.
func (t *table[V]) edit(key string) *slot[V] {
	if t.edited == nil {
		t.pages, t.edited = slices.Clone(t.pages), make([]bool, len(t.pages))
	}
	p, in := t.slot(key)
	if !t.edited[p] {
		copied := *t.pages[p]
		t.pages[p], t.edited[p] = &copied, true
	}
	return &t.pages[p][in]
}

// put gives the key a value.
func (t *table[V]) put(key string, value V) {
	t.remove(key)
	t.reserve(t.len + 1)
	s := t.edit(key)
	var next *slot[V]
	if s.key != "" {
		first := *s
		next = &first
	}
	*s = slot[V]{key, value, next}
	t.len++
}

// remove removes the key, if the table has it.
func (t *table[V]) remove(key string) {
	if _, ok := t.get(key); !ok {
		return
	}
	s := t.edit(key)
	if rest := s.without(key); rest != nil {
		*s = *rest
	} else {
		*s = slot[V]{}
	}
	t.len--
}

// without is a list of entries without the key, which is one of them.
func (s *slot[V]) without(key string) *slot[V] {
	if s.key == key {
		return s.next
	}
	return &slot[V]{s.key, s.value, s.next.without(key)}
}

// all are the entries, in no order.
func (t *table[V]) all() []slot[V] {
	all := make([]slot[V], 0, t.len)
	for _, p := range t.pages {
		for i := range p {
			for s := &p[i]; s != nil && s.key != ""; s = s.next {
				all = append(all, *s)
			}
		}
	}
	return all
}

// sorted are the entries in the order of their keys.
func (t *table[V]) sorted() []slot[V] {
	all := t.all()
	slices.SortFunc(all, func(a, b slot[V]) int { return strings.Compare(a.key, b.key) })
	return all
}
