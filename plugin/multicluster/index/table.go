// SPDX-License-Identifier: Apache-2.0

package index

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
)

// table is a map in parts, of which a changed copy shares those without a change with the original, which stays as it
// was. Reading it takes no lock and does not allocate, which a sync.Map does for each key.
type table[V any] struct {
	seed   maphash.Seed
	parts  *[parts]map[string]V
	edited *[parts]bool // which parts are copies that are changed in place; nil if the list of parts is shared
	len    int
}

// parts is how many there are. A change costs a copy of one of them.
const parts = 256

// entry is a key and its value.
type entry[V any] struct {
	key   string
	value V
}

func newTable[V any]() table[V] {
	return table[V]{seed: maphash.MakeSeed(), parts: new([parts]map[string]V)}
}

// done returns the table with nothing left to be changed in place. It must be called between changes and sharing.
func (t table[V]) done() table[V] {
	t.edited = nil
	return t
}

func (t *table[V]) part(key string) int { return int(maphash.String(t.seed, key) % parts) }

// get returns the value of the key.
func (t *table[V]) get(key string) (value V, ok bool) {
	value, ok = t.parts[t.part(key)][key]
	return value, ok
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

// edit returns the part of a key, to be changed in place.
func (t *table[V]) edit(key string) map[string]V {
	if t.edited == nil {
		copied := *t.parts
		t.parts, t.edited = &copied, new([parts]bool)
	}
	i := t.part(key)
	if !t.edited[i] {
		t.edited[i] = true
		if t.parts[i] = maps.Clone(t.parts[i]); t.parts[i] == nil {
			t.parts[i] = make(map[string]V)
		}
	}
	return t.parts[i]
}

// put gives the key a value.
func (t *table[V]) put(key string, value V) {
	part := t.edit(key)
	t.len -= len(part)
	part[key] = value
	t.len += len(part)
}

// remove removes the key, if the table has it.
func (t *table[V]) remove(key string) {
	part := t.edit(key)
	t.len -= len(part)
	delete(part, key)
	t.len += len(part)
}

// sorted are the entries in the order of their keys.
func (t *table[V]) sorted() []entry[V] {
	all := make([]entry[V], 0, t.len)
	for _, part := range t.parts {
		for key, value := range part {
			all = append(all, entry[V]{key, value})
		}
	}
	slices.SortFunc(all, func(a, b entry[V]) int { return strings.Compare(a.key, b.key) })
	return all
}
