// SPDX-License-Identifier: Apache-2.0

package index

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// recent remembers large answers of headless services, so that those that are asked for again and again are made once.
// It holds few: one in each of its slots, where a newer one takes the place of an older one. An answer belongs to one
// state of a service, is not found for another, and goes with the first update after that state. Any number of goroutines
// may use it; they take no lock.
type recent struct {
	seed  maphash.Seed
	slots [recentSlots]atomic.Pointer[remembered]
}

const (
	recentSlots = 32
	// Answers of fewer records are made as fast as they are found; more do not fit into a message.
	recentLeast    = 16
	recentGreatest = 4096
)

// recentKey is what an answer is to.
type recentKey struct {
	service        *Service
	zone           int
	qtype          uint16
	port, protocol string
}

// remembered is an answer that has all records there are, which are shared from now on.
type remembered struct {
	recentKey
	answer Answer
	octets int // of the records in a message
	// whole tells that all additional records are in it; else they are those that fit into so much room.
	whole bool
	room  int
}

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// keyOf is the key of a question for a headless service; ok is false where its answer is not remembered, because it is
// small, or because its records would have an owner that others do not write like that.
func keyOf(s *Service, q *Question) (key recentKey, ok bool) {
	if s.Len() < recentLeast {
		return key, false // to look for it would cost more than to make it
	}
	key = recentKey{s, q.Zone, q.Type, q.Request.Port, q.Request.Protocol}
	for i := range len(q.Name) {
		if c := q.Name[i]; c >= 'A' && c <= 'Z' {
			return key, false
		}
	}
	return key, true
}

// forget drops the answers of services that are no longer the current ones of their keys.
func (r *recent) forget(current table[*Service]) {
	for i := range r.slots {
		slot := &r.slots[i]
		kept := slot.Load()
		if kept == nil {
			continue
		}
		if now, _ := current.get(kept.service.Key()); now != kept.service {
			slot.CompareAndSwap(kept, nil)
		}
	}
}

func (r *recent) slot(key recentKey) *atomic.Pointer[remembered] {
	return &r.slots[maphash.Comparable(r.seed, key)%recentSlots]
}

// find returns the answer where it is remembered and the client can take all of it.
func (r *recent) find(key recentKey, q *Question) (Answer, bool) {
	found := r.slot(key).Load()
	if found == nil || found.recentKey != key || q.Max > 0 && len(found.answer.Answer) > q.Max {
		return Answer{}, false
	}
	room := q.Client.room(q.Name)
	return found.answer, found.octets <= room && (found.whole || room <= found.room)
}

// keep remembers an answer that has all records there are, if it is large. It takes so many octets of the room. Whole tells
// that it has all additional records, too; else it has those that fit into the room.
func (r *recent) keep(key recentKey, answer Answer, octets int, whole bool, room int) {
	n := len(answer.Answer)
	if n < recentLeast || n+len(answer.Extra) > recentGreatest {
		return
	}
	key.port, key.protocol = strings.Clone(key.port), strings.Clone(key.protocol)
	r.slot(key).Store(&remembered{key, answer, octets, whole, room})
}
