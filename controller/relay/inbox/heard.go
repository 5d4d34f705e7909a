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
	// floor is the time of the member, in milliseconds, up to which it was read directly, 0 for never.
	floor int64
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
	case stamp.Counter <= h.floor:
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

// Directly notes that the member was read directly up to a time of its own clock, in milliseconds. Counters are at least
// that time: a relay that shows an earlier state is behind.
func (h *Heard) Directly(milliseconds int64) { h.floor = milliseconds }

// Keep forgets all keys but those that are kept. A key that returns begins anew.
func (h *Heard) Keep(kept func(key string) bool) {
	h.heartbeats = slices.DeleteFunc(h.heartbeats, func(each Stamp) bool { return !kept(each.Key) })
	if !kept(h.slice.Key) {
		h.slice = Stamp{}
	}
}

// maxKeys bounds the keys of a text.
const maxKeys = 16

// String returns the highest counters as text, the current key first: see ParseHeard.
func (h *Heard) String() string {
	parts := make([]string, 0, len(h.heartbeats))
	for _, each := range h.heartbeats[:min(len(h.heartbeats), maxKeys)] {
		counter := each.Counter
		if h.slice.After(each) {
			counter = h.slice.Counter // the next leader may not go back behind this slice
		}
		parts = append(parts, each.Key+":"+strconv.FormatInt(counter, 10))
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
		key, number, _ := strings.Cut(part, ":")
		counter, err := strconv.ParseInt(number, 10, 64)
		if err != nil || key == "" || counter <= 0 || strings.HasPrefix(number, "+") {
			return Heard{}, fmt.Errorf("%.100q is no key and counter, as in key:counter", part)
		}
		if slices.ContainsFunc(heard.heartbeats, func(each Stamp) bool { return each.Key == key }) {
			return Heard{}, fmt.Errorf("key %.100q occurs twice", key)
		}
		heard.heartbeats = append(heard.heartbeats, Stamp{key, counter})
	}
	if len(heard.heartbeats) > maxKeys {
		return Heard{}, errors.New("too many keys")
	}
	return heard, nil
}
