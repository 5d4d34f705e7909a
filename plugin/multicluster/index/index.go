// SPDX-License-Identifier: Apache-2.0

// Package index publishes the record sets of all services as immutable snapshots. A query loads one and looks no
// further.
//
// Building a service costs what the service costs, and publishing it costs a few small copies, however many other
// services there are. The package is pure.
package index

import (
	"maps"
	"sync/atomic"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Index publishes the services of a clusterset. Any number of goroutines may take snapshots while one updates it.
type Index struct {
	config  *record.Config
	current atomic.Pointer[Snapshot]
}

// New makes an index that has no snapshot before its first update.
func New(config *record.Config) *Index { return &Index{config: config} }

// Config is what the index was made with.
func (x *Index) Config() *record.Config { return x.config }

// Snapshot is the present state, or nil before the first update.
func (x *Index) Snapshot() *Snapshot { return x.current.Load() }

// Change is a new state of one service.
type Change struct {
	// Key is that of the service.
	Key string
	// Service is nil if the service is gone.
	Service *record.Service
}

// Update publishes all changes at once; it must not run twice at a time. The serial moves if and only if an answer
// changed: to now, or to the next number if now is not greater (RFC 1982). Update returns whether it moved.
func (x *Index) Update(now uint32, changes ...Change) bool {
	before := x.current.Load()
	var next Snapshot
	if before == nil {
		next = Snapshot{
			config:   x.config,
			services: newTable[*record.Service](), namespaces: newTable[int](), reverse: newTable[[]string](),
		}
	} else {
		next = *before
	}
	moved := before == nil
	next.totals.Skips = maps.Clone(next.totals.Skips)
	for _, change := range changes {
		moved = next.apply(change) || moved
	}
	next.services, next.namespaces, next.reverse = next.services.done(), next.namespaces.done(), next.reverse.done()
	if moved {
		if before == nil || newer(now, before.serial) {
			next.serial = now
		} else {
			next.serial = before.serial + 1
		}
		next.soa = makeSOA(x.config, next.serial)
		next.outdated = make(chan struct{})
	}
	x.current.Store(&next)
	if moved && before != nil {
		close(before.outdated)
	}
	return moved
}

// newer tells whether serial a comes after b (RFC 1982, section 3.2).
func newer(a, b uint32) bool { return a != b && a-b < 1<<31 }
