// SPDX-License-Identifier: Apache-2.0

// Package inbox decides what counts of a mailbox that an untrusted relay shows (docs/design/relay.md). All statements
// were verified before. The relay may withhold, delay, repeat, mix and reorder them.
//
// The view is what the relay shows. What was released is what the reader uses. A slice that is newer than anything
// released of it, and than the last heartbeat, is released at once. Everything else, above all the end of a slice,
// waits for a heartbeat whose root is the root of the view.
package inbox

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// A Stamp orders the statements of one key. Counters of different keys have no order.
type Stamp struct {
	Key     string
	Counter int64
}

// After reports whether the statement is known to be later than another one: it has the same key and a higher counter.
func (s Stamp) After(other Stamp) bool { return s.Key == other.Key && s.Counter > other.Counter }

// A Slice is a verified statement about a slice.
type Slice[C any] struct {
	Name types.NamespacedName
	mailbox.Entry
	// Key is the one that signed the statement.
	Key string
	// Content is not used here.
	Content C
}

func (s Slice[C]) stamp() Stamp { return Stamp{s.Key, s.Counter} }

// A Heartbeat is a verified statement about a mailbox.
type Heartbeat[H any] struct {
	Stamp
	Root mailbox.Digest
	// Content is not used here.
	Content H
}

// A Release is what the reader may use from now on, in this order.
type Release[C, H any] struct {
	// Heartbeat counts; nil for none.
	Heartbeat *Heartbeat[H]
	// Listed is set for the first heartbeat after Begin: the list with all Changes is what the member publishes.
	Listed bool
	// Changes are those of slices.
	Changes []Change[C]
}

// A Change puts a slice, or deletes it.
type Change[C any] struct {
	Name    types.NamespacedName
	Content C
	Deleted bool
}

const (
	// ringSize bounds the roots of recent views, and waitingSize the heartbeats that wait for a view.
	ringSize    = 512
	waitingSize = 8
)

// entry is one slice. The zero Stamp is none.
type entry[C any] struct {
	released Stamp
	shown    Stamp
	changed  int // the view after which shown is what it is
	content  C   // of shown, until it is released
}

// view is the state that the relay showed after one event. put is the Stamp of the slice that the event put; it is zero
// for a deletion.
type view struct {
	number int
	root   mailbox.Digest
	put    Stamp
}

// An Inbox follows one mailbox from a list on. It is not safe for concurrent use.
type Inbox[C, H any] struct {
	heard   *Heard
	ledger  *mailbox.Ledger
	entries map[types.NamespacedName]*entry[C]
	pending map[types.NamespacedName]struct{} // entries whose view is not released
	views   []view                            // the last ones, the current one last; empty before List
	waiting []Heartbeat[H]
	settled bool // a heartbeat vouched for the list
}

// New returns an inbox without a list. heard is what was heard of the member on all paths.
func New[C, H any](heard *Heard) *Inbox[C, H] { return &Inbox[C, H]{heard: heard} }

// Begin starts with a list, which the relay showed as a whole. Nothing of it is released before a heartbeat that is not
// older than anything known vouches for it.
func (b *Inbox[C, H]) Begin(list []Slice[C]) Release[C, H] {
	b.ledger, b.settled = &mailbox.Ledger{}, false
	b.entries, b.pending = make(map[types.NamespacedName]*entry[C], len(list)), map[types.NamespacedName]struct{}{}
	for _, slice := range list {
		b.ledger.Put(slice.Name, slice.Entry)
		b.entries[slice.Name] = &entry[C]{released: slice.stamp(), shown: slice.stamp()}
	}
	b.views = []view{{root: b.ledger.Root()}}
	return b.check()
}

// End forgets the list. Nothing counts before the next one.
func (b *Inbox[C, H]) End() {
	b.ledger, b.entries, b.pending, b.views, b.settled = nil, nil, nil, nil, false
}

// Len returns how many slices the relay shows, or showed before.
func (b *Inbox[C, H]) Len() int { return len(b.entries) }

// Has reports whether the relay shows a slice, or showed it before and no heartbeat vouched for its end.
func (b *Inbox[C, H]) Has(name types.NamespacedName) bool { return b.entries[name] != nil }

// Waits reports whether a heartbeat waits that is later than all that counted: no view has its root.
func (b *Inbox[C, H]) Waits() bool { return len(b.waiting) > 0 }

// Settled reports whether a heartbeat vouched for the list.
func (b *Inbox[C, H]) Settled() bool { return b.settled }

// Put notes that the relay shows a slice.
func (b *Inbox[C, H]) Put(slice Slice[C]) Release[C, H] {
	e := b.entries[slice.Name]
	switch {
	case e == nil:
		e = &entry[C]{}
		b.entries[slice.Name] = e
	case e.shown == slice.stamp():
		return Release[C, H]{}
	}
	b.ledger.Put(slice.Name, slice.Entry)
	e.shown, e.content = slice.stamp(), slice.Content
	b.turn(slice.Name, e, slice.stamp())
	var release Release[C, H]
	if b.settled && b.isNew(e) {
		release.Changes = []Change[C]{b.release(slice.Name, e)}
	}
	return b.check().after(release)
}

// Delete notes that the relay does not show a slice anymore.
func (b *Inbox[C, H]) Delete(name types.NamespacedName) Release[C, H] {
	e := b.entries[name]
	if e == nil || e.shown == (Stamp{}) {
		return Release[C, H]{}
	}
	var none C
	lost := e.shown != e.released
	b.ledger.Delete(name)
	e.shown, e.content = Stamp{}, none
	b.turn(name, e, Stamp{})
	if lost { // the views that have it cannot be released anymore
		b.views = b.views[len(b.views)-1:]
	}
	return b.check()
}

// Heartbeat notes that the relay shows a heartbeat.
func (b *Inbox[C, H]) Heartbeat(heartbeat Heartbeat[H]) Release[C, H] {
	if slices.ContainsFunc(b.waiting, func(each Heartbeat[H]) bool { return each.Stamp == heartbeat.Stamp }) {
		return Release[C, H]{}
	}
	if len(b.waiting) == waitingSize {
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
	b.waiting = append(b.waiting, heartbeat)
	return b.check()
}

// turn notes that the view changed.
func (b *Inbox[C, H]) turn(name types.NamespacedName, e *entry[C], put Stamp) {
	e.changed = b.views[len(b.views)-1].number + 1
	b.views = append(b.views, view{number: e.changed, root: b.ledger.Root(), put: put})
	if len(b.views) > 2*ringSize {
		b.views = slices.Clone(b.views[len(b.views)-ringSize:])
	}
	if delete(b.pending, name); e.shown != e.released {
		b.pending[name] = struct{}{}
	} else if e.released == (Stamp{}) {
		delete(b.entries, name) // it was never released
	}
}

// isNew reports whether what is shown of a slice counts without a heartbeat.
func (b *Inbox[C, H]) isNew(e *entry[C]) bool {
	return b.heard.follows(e.shown) && (e.released == (Stamp{}) || e.shown.After(e.released))
}

// release releases what is shown of a slice.
func (b *Inbox[C, H]) release(name types.NamespacedName, e *entry[C]) Change[C] {
	delete(b.pending, name)
	change := Change[C]{Name: name, Content: e.content, Deleted: e.shown == (Stamp{})}
	if change.Deleted {
		delete(b.entries, name)
		return change
	}
	var none C
	e.released, e.content = e.shown, none
	b.heard.released(e.shown)
	return change
}

// check looks for a heartbeat that counts now. The latest one does, with all that it vouches for.
func (b *Inbox[C, H]) check() Release[C, H] {
	b.waiting = slices.DeleteFunc(b.waiting, func(each Heartbeat[H]) bool { return !b.admits(each.Stamp) })
	if len(b.views) == 0 {
		return Release[C, H]{}
	}
	for i := len(b.waiting) - 1; i >= 0; i-- {
		if at, found := b.vouched(b.waiting[i]); found {
			return b.count(b.waiting[i], at)
		}
	}
	return Release[C, H]{}
}

// admits reports whether a heartbeat may count. The first one after a list may be the last one that counted.
func (b *Inbox[C, H]) admits(stamp Stamp) bool {
	if b.settled {
		return b.heard.Later(stamp)
	}
	return b.heard.Latest(stamp)
}

// vouched returns the last view with the root of a heartbeat. All that the relay showed after that view must be newer
// than the heartbeat: otherwise the member had changed or removed it before.
func (b *Inbox[C, H]) vouched(heartbeat Heartbeat[H]) (number int, found bool) {
	for _, view := range slices.Backward(b.views) {
		if view.root == heartbeat.Root {
			return view.number, true
		}
		if view.put != (Stamp{}) && !view.put.After(heartbeat.Stamp) {
			return 0, false
		}
	}
	return 0, false
}

// count releases what a heartbeat vouches for: the view of a number.
func (b *Inbox[C, H]) count(heartbeat Heartbeat[H], number int) Release[C, H] {
	release := Release[C, H]{Heartbeat: &heartbeat, Listed: !b.settled}
	b.settled = true
	b.heard.counted(heartbeat.Stamp)
	for len(b.views) > 0 && b.views[0].number < number {
		b.views = b.views[1:]
	}
	if release.Listed {
		for _, e := range b.entries {
			b.heard.released(e.released)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(b.pending), func(x, y types.NamespacedName) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	}) {
		e := b.entries[name]
		if e.changed <= number && !e.released.After(heartbeat.Stamp) || e.shown != (Stamp{}) && b.isNew(e) {
			release.Changes = append(release.Changes, b.release(name, e))
		}
	}
	return release
}

// after returns a release that follows another one without a heartbeat.
func (r Release[C, H]) after(before Release[C, H]) Release[C, H] {
	r.Changes = append(before.Changes, r.Changes...)
	return r
}
