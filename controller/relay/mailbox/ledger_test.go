// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

type item struct {
	name  types.NamespacedName
	entry Entry
}

func items(n int) []item {
	all := make([]item, n)
	for i := range all {
		all[i] = item{
			types.NamespacedName{Namespace: fmt.Sprint("ns-", i%7), Name: fmt.Sprint("slice-", i)},
			Entry{Counter: int64(i + 1), Digest: sha256.Sum256([]byte{byte(i), byte(i >> 8)})},
		}
	}
	return all
}

func ledgerOf(all []item) *Ledger {
	l := &Ledger{}
	for _, each := range all {
		l.Put(each.name, each.entry)
	}
	return l
}

// TestRootDependsOnEntriesOnly: the root does not depend on the order and history of the entries.
func TestRootDependsOnEntriesOnly(t *testing.T) {
	all := items(2000)
	want := ledgerOf(all).Root()
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		l := &Ledger{}
		for i, each := range all {
			if random.IntN(3) == 0 {
				l.Put(all[random.IntN(i+1)].name, Entry{Counter: 99})
			}
			l.Put(each.name, each.entry)
			if random.IntN(50) == 0 {
				l.Root()
			}
		}
		for _, each := range all { // those that were overwritten, or deleted
			if random.IntN(4) == 0 {
				l.Delete(each.name)
				l.Delete(each.name)
			}
			l.Put(each.name, each.entry)
		}
		if l.Root() != want || l.Len() != len(all) {
			t.Fatalf("seed %d: another root, or %d entries", seed, l.Len())
		}
	}
}

// TestRootDiffersWithEachEntry: a slice that is withheld, added, swapped or of another statement changes the root.
func TestRootDiffersWithEachEntry(t *testing.T) {
	all := items(1000)
	l := ledgerOf(all)
	seen := map[Digest]string{l.Root(): "as it is"}
	check := func(what string, changed *Ledger) {
		t.Helper()
		root := changed.Root()
		if before, known := seen[root]; known {
			t.Errorf("%s: the root of %s", what, before)
		}
		seen[root] = what
	}
	for i, each := range all {
		without := l.Clone()
		without.Delete(each.name)
		check(fmt.Sprint("without ", each.name), without)
		newer := l.Clone()
		newer.Put(each.name, Entry{each.entry.Counter + 10_000, each.entry.Digest})
		check(fmt.Sprint("newer ", each.name), newer)
		other := l.Clone()
		other.Put(each.name, Entry{each.entry.Counter, Digest{byte(i), byte(i >> 8), 1}})
		check(fmt.Sprint("changed ", each.name), other)
		if i > 0 {
			swapped := l.Clone()
			swapped.Put(each.name, all[i-1].entry)
			swapped.Put(all[i-1].name, each.entry)
			check(fmt.Sprint("swapped ", each.name), swapped)
		}
	}
	check("empty", &Ledger{})
	if entry, exists := l.Get(all[0].name); !exists || entry != all[0].entry {
		t.Error("a clone changed the ledger")
	}
	number := 0
	for name, entry := range l.All {
		if got, _ := l.Get(name); got != entry {
			t.Errorf("%s: got %v", name, entry)
		}
		number++
	}
	if number != l.Len() {
		t.Errorf("%d of %d entries", number, l.Len())
	}
}

// BenchmarkRoot is the cost of a changed slice in a mailbox of 10,000.
func BenchmarkRoot(b *testing.B) {
	all := items(10_000)
	l := ledgerOf(all)
	l.Root()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Put(all[i%len(all)].name, Entry{Counter: int64(i + 20_000)})
		l.Root()
	}
}
