// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Cache holds a few large answers of headless services. A newer one takes the place of an older one. An answer belongs
// to one state of a service and is not found for another. A Cache is safe for concurrent use and takes no lock.
type Cache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cached]
}

const (
	cacheSlots = 32
	// Answers of fewer records are made as fast as they are found; more do not fit into a message.
	minCached = 16
	maxCached = 4096
)

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{seed: maphash.MakeSeed()} }

// cacheKey identifies an answer.
type cacheKey struct {
	service        *record.Service
	zone           int
	qtype          uint16
	port, protocol string
}

// cached is an answer that is the same for all clients with a room in the span.
type cached struct {
	cacheKey
	answer Answer
	span
}

// keyOf is the key of a question for a headless service. ok is false if its answer is not cached, because it is small,
// or because its records would have an owner that others write in another case.
func keyOf(s *record.Service, q *Question) (key cacheKey, ok bool) {
	if s.Len() < minCached {
		return key, false // making it costs less than finding it
	}
	key = cacheKey{s, q.Zone, q.Type, q.Request.Port, q.Request.Protocol}
	return key, strings.ToLower(q.Name) == q.Name
}

// Forget drops the answers of services that are not the current ones of their keys.
func (c *Cache) Forget(current func(key string) *record.Service) {
	for i := range c.slots {
		slot := &c.slots[i]
		if kept := slot.Load(); kept != nil && current(kept.service.Key()) != kept.service {
			slot.CompareAndSwap(kept, nil)
		}
	}
}

func (c *Cache) slot(key cacheKey) *atomic.Pointer[cached] {
	return &c.slots[maphash.Comparable(c.seed, key)%cacheSlots]
}

// find returns the answer of at most limit records, if limit is not 0, for a client with so much room.
func (c *Cache) find(key cacheKey, limit, room int) (Answer, bool) {
	found := c.slot(key).Load()
	if found == nil || found.cacheKey != key || limit > 0 && len(found.answer.Answer) > limit {
		return Answer{}, false
	}
	return found.answer, found.min <= room && room <= found.max
}

// keep caches an answer if it is large and has all records there are.
func (c *Cache) keep(key cacheKey, answer Answer, fits span) {
	n := len(answer.Answer)
	if fits == (span{}) || n < minCached || n+len(answer.Extra) > maxCached {
		return
	}
	key.port, key.protocol = strings.Clone(key.port), strings.Clone(key.protocol)
	c.slot(key).Store(&cached{key, answer, fits})
}
