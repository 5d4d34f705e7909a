// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Heard is what was heard of a member on all paths: the highest counters of its keys. The zero value is nothing. It is
// not safe for concurrent use.
type Heard struct {
	// heartbeats are the last ones that counted, one of each key. The first one counted last: its key is the current one.
	heartbeats []Stamp
	// slice is the highest counter of a released slice with the current key.
	slice Stamp
	// floors are the times of the member, in milliseconds, up to which it was read directly while it had these keys.
	floors []Stamp
}

// Later reports whether a heartbeat is later than all that counted. The first one of a key is, since the member
// replaced its key. Once another key has followed, the counter of the key must exceed those of all keys.
func (h *Heard) Later(stamp Stamp) bool {
	return h.beyond(stamp, func(highest int64) bool { return stamp.Counter > highest })
}

// Latest reports whether a heartbeat is Later, or the last one that counted, and not older than a released slice: a
// list for which it vouches goes back behind nothing.
func (h *Heard) Latest(stamp Stamp) bool {
	return !h.slice.After(stamp) && h.beyond(stamp, func(highest int64) bool { return stamp.Counter >= highest })
}

func (h *Heard) beyond(stamp Stamp, beyond func(int64) bool) bool {
	at := slices.IndexFunc(h.heartbeats, func(each Stamp) bool { return each.Key == stamp.Key })
	switch {
	case slices.ContainsFunc(h.floors, func(floor Stamp) bool { return floor.Key == stamp.Key && !stamp.After(floor) }):
		return false
	case at < 0:
		return true
	case at == 0:
		return beyond(h.heartbeats[0].Counter)
	}
	for _, each := range h.heartbeats {
		if stamp.Counter <= each.Counter {
			return false
		}
	}
	return true
}

// follows reports whether a slice is newer than the last heartbeat that counted, by its key.
func (h *Heard) follows(slice Stamp) bool {
	return len(h.heartbeats) > 0 && slice.After(h.heartbeats[0])
}

// counted notes a heartbeat that counts.
func (h *Heard) counted(stamp Stamp) {
	h.heartbeats = slices.DeleteFunc(h.heartbeats, func(each Stamp) bool { return each.Key == stamp.Key })
	h.heartbeats = slices.Insert(h.heartbeats, 0, stamp)
}

// released notes a slice that was released.
func (h *Heard) released(slice Stamp) {
	if h.follows(slice) && (h.slice.Key != slice.Key || slice.After(h.slice)) {
		h.slice = slice
	}
}

// Directly notes that the member was read directly up to a time of its own clock, in milliseconds, while it had these
// keys. Their counters are at least that time: a relay that shows an earlier state is behind. A key that is added later
// begins anew.
func (h *Heard) Directly(milliseconds int64, keys ...string) {
	h.floors = nil
	for _, key := range keys {
		if milliseconds > 0 {
			h.floors = append(h.floors, Stamp{key, milliseconds})
		}
	}
}

// Merge takes over what a former reader heard. Of each key the highest counter stays, and the current key stays the
// current one, if there is one.
func (h *Heard) Merge(former Heard) {
	h.heartbeats = highest(h.heartbeats, former.heartbeats)
	h.floors = highest(h.floors, former.floors)
}

// highest returns the stamps with the highest counter of each key: those of the first list, then the others.
func highest(first, others []Stamp) []Stamp {
	all := slices.Clone(first)
	for _, other := range others {
		if at := slices.IndexFunc(all, func(each Stamp) bool { return each.Key == other.Key }); at < 0 {
			all = append(all, other)
		} else if other.After(all[at]) {
			all[at] = other
		}
	}
	return all
}

// Keep forgets all keys but those that are kept. A key that returns begins anew.
func (h *Heard) Keep(kept func(key string) bool) {
	gone := func(each Stamp) bool { return !kept(each.Key) }
	h.heartbeats, h.floors = slices.DeleteFunc(h.heartbeats, gone), slices.DeleteFunc(h.floors, gone)
	if !kept(h.slice.Key) {
		h.slice = Stamp{}
	}
}

const (
	// maxKeys bounds the keys of a text.
	maxKeys = 16
	// direct precedes the key of a time up to which the member was read directly.
	direct = "direct/"
)

// String returns the highest counters as text, the current key first, and the times up to which the member was read
// directly: see ParseHeard.
func (h *Heard) String() string {
	parts := make([]string, 0, len(h.heartbeats)+len(h.floors))
	for _, each := range h.heartbeats[:min(len(h.heartbeats), maxKeys)] {
		counter := each.Counter
		if h.slice.After(each) {
			counter = h.slice.Counter // the next leader may not go back behind this slice
		}
		parts = append(parts, each.Key+":"+strconv.FormatInt(counter, 10))
	}
	for _, each := range h.floors[:min(len(h.floors), maxKeys)] {
		parts = append(parts, direct+each.Key+":"+strconv.FormatInt(each.Counter, 10))
	}
	return strings.Join(parts, ",")
}

// ParseHeard is the inverse of Heard.String.
func ParseHeard(text string) (Heard, error) {
	var heard Heard
	if text == "" {
		return heard, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		of := &heard.heartbeats
		key, number, _ := strings.Cut(part, ":")
		if named, found := strings.CutPrefix(key, direct); found {
			of, key = &heard.floors, named
		}
		counter, err := strconv.ParseInt(number, 10, 64)
		if err != nil || key == "" || counter <= 0 || strings.HasPrefix(number, "+") {
			return Heard{}, fmt.Errorf("%.100q is no key and counter, as in key:counter", part)
		}
		if slices.ContainsFunc(*of, func(each Stamp) bool { return each.Key == key }) {
			return Heard{}, fmt.Errorf("key %.100q occurs twice", key)
		}
		*of = append(*of, Stamp{key, counter})
	}
	if max(len(heard.heartbeats), len(heard.floors)) > maxKeys {
		return Heard{}, errors.New("too many keys")
	}
	return heard, nil
}
