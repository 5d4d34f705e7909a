// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// A Ledger is which slices a mailbox has, and which statement of each. Its zero value is empty. It is not safe for
// concurrent use.
type Ledger struct {
	buckets [256]bucket
	len     int
}

// A bucket has the slices whose names have a hash with the same first byte.
type bucket struct {
	entries map[types.NamespacedName]Entry
	hash    Digest
	valid   bool // hash is that of the entries
}

// An Entry is the statement about a slice.
type Entry struct {
	// Counter is that of the statement.
	Counter int64
	// Digest is that of the encoded slice.
	Digest Digest
}

func (l *Ledger) bucket(name types.NamespacedName) *bucket {
	return &l.buckets[sha256.Sum256([]byte(name.String()))[0]]
}

// Put adds or replaces the entry of a slice.
func (l *Ledger) Put(name types.NamespacedName, entry Entry) {
	b := l.bucket(name)
	before, exists := b.entries[name]
	if exists && before == entry {
		return
	}
	if b.entries == nil {
		b.entries = map[types.NamespacedName]Entry{}
	}
	if !exists {
		l.len++
	}
	b.entries[name], b.valid = entry, false
}

// Delete removes the entry of a slice, if there is one.
func (l *Ledger) Delete(name types.NamespacedName) {
	b := l.bucket(name)
	if _, exists := b.entries[name]; exists {
		delete(b.entries, name)
		b.valid = false
		l.len--
	}
}

// Get returns the entry of a slice, and whether there is one.
func (l *Ledger) Get(name types.NamespacedName) (Entry, bool) {
	entry, exists := l.bucket(name).entries[name]
	return entry, exists
}

// Len returns the number of slices.
func (l *Ledger) Len() int { return l.len }

// All calls yield with each entry, in no order, until it returns false. The Ledger must not change meanwhile, but for
// the entry that yield is called with.
func (l *Ledger) All(yield func(types.NamespacedName, Entry) bool) {
	for i := range l.buckets {
		for name, entry := range l.buckets[i].entries {
			if !yield(name, entry) {
				return
			}
		}
	}
}

// Clone returns a Ledger with the same entries.
func (l *Ledger) Clone() *Ledger {
	c := &Ledger{buckets: l.buckets, len: l.len}
	for i := range c.buckets {
		c.buckets[i].entries = maps.Clone(c.buckets[i].entries)
	}
	return c
}

// Root returns the hash of all entries. It does not depend on the order in which they came. It hashes the buckets that
// changed since the last call, and then the 256 hashes of buckets.
func (l *Ledger) Root() Digest {
	all := make([]byte, 0, len(l.buckets)*sha256.Size)
	for i := range l.buckets {
		b := &l.buckets[i]
		if !b.valid {
			b.hash, b.valid = b.sum(), true
		}
		all = append(all, b.hash[:]...)
	}
	return sha256.Sum256(all)
}

// sum hashes the entries in the order of their names. A name ends with a byte that no name has.
func (b *bucket) sum() Digest {
	names := slices.SortedFunc(maps.Keys(b.entries), func(x, y types.NamespacedName) int {
		return strings.Compare(x.String(), y.String())
	})
	var text []byte
	for _, name := range names {
		entry := b.entries[name]
		text = append(text, name.String()...)
		text = append(text, 0)
		text = binary.BigEndian.AppendUint64(text, uint64(entry.Counter))
		text = append(text, entry.Digest[:]...)
	}
	return sha256.Sum256(text)
}
