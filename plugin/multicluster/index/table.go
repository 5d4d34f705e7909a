// SPDX-License-Identifier: Apache-2.0

package index

import (
	"hash/maphash"
	"slices"
	"strings"
)

// table is a persistent map: with and without return a changed copy that shares all but a few hundred octets with the
// original, which stays as it was. Reading it takes no lock.
type table[V any] struct {
	seed maphash.Seed
	root *[fanOut]*[fanOut]bucket[V]
	len  int
	edit *edit // nil: nothing may be changed in place
}

// edit has the parts of a table that were copied since it began. They are not shared and are changed in place.
type edit struct {
	root     bool
	branches [fanOut]bool
}

// editing returns a table whose changes copy each part at most once. Until done, the table must not be shared, nor the
// originals of its copies be used.
func (t table[V]) editing() table[V] {
	t.edit = new(edit)
	return t
}

// done returns the table with nothing left to be changed in place.
func (t table[V]) done() table[V] {
	t.edit = nil
	return t
}

// fanOut is the number of children of each of the two inner levels.
const fanOut = 64

// bucket holds the entries whose keys hash alike.
type bucket[V any] []entry[V]

type entry[V any] struct {
	key   string
	value V
}

func newTable[V any]() table[V] {
	return table[V]{seed: maphash.MakeSeed(), root: new([fanOut]*[fanOut]bucket[V])}
}

// path is the path of a key through the inner levels.
func (t table[V]) path(key string) (outer, inner uint64) {
	hash := maphash.String(t.seed, key)
	return hash % fanOut, hash / fanOut % fanOut
}

// get returns the value of the key.
func (t table[V]) get(key string) (value V, ok bool) {
	outer, inner := t.path(key)
	branch := t.root[outer]
	if branch == nil {
		return value, false
	}
	b := branch[inner]
	for i := range b {
		if b[i].key == key {
			return b[i].value, true
		}
	}
	return value, false
}

// getFold is get for a key in any case. The table has keys in lower case.
func (t table[V]) getFold(key string) (value V, ok bool) {
	if value, ok = t.get(key); ok {
		return value, ok
	}
	if lower := strings.ToLower(key); lower != key {
		return t.get(lower)
	}
	return value, false
}

// with returns a table in which the key has the value.
func (t table[V]) with(key string, value V) table[V] {
	return t.change(key, func(b bucket[V]) bucket[V] {
		return append(b, entry[V]{key, value})
	})
}

// without returns a table without the key.
func (t table[V]) without(key string) table[V] {
	return t.change(key, func(b bucket[V]) bucket[V] { return b })
}

// change returns a table whose bucket of the key is what add makes of a copy without that key.
func (t table[V]) change(key string, add func(bucket[V]) bucket[V]) table[V] {
	outer, inner := t.path(key)
	root, branch := t.root, t.root[outer]
	if t.edit == nil || !t.edit.root {
		root = new([fanOut]*[fanOut]bucket[V])
		*root = *t.root
	}
	if t.edit == nil || !t.edit.branches[outer] {
		branch = new([fanOut]bucket[V])
		if root[outer] != nil {
			*branch = *root[outer]
		}
		root[outer] = branch
	}
	if t.edit != nil {
		t.edit.root, t.edit.branches[outer] = true, true
	}
	before := branch[inner]
	after := make(bucket[V], 0, len(before)+1)
	for _, e := range before {
		if e.key != key {
			after = append(after, e)
		}
	}
	after = slices.Clip(add(after))
	if len(after) == 0 {
		after = nil
	}
	branch[inner] = after
	return table[V]{seed: t.seed, root: root, len: t.len - len(before) + len(after), edit: t.edit}
}

// sorted are the entries in the order of their keys.
func (t table[V]) sorted() []entry[V] {
	all := make([]entry[V], 0, t.len)
	for _, branch := range t.root {
		if branch == nil {
			continue
		}
		for _, b := range branch {
			all = append(all, b...)
		}
	}
	slices.SortFunc(all, func(a, b entry[V]) int { return strings.Compare(a.key, b.key) })
	return all
}
