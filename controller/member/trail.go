// SPDX-License-Identifier: Apache-2.0

package member

import (
	"maps"
	"math"
	"strconv"
)

// A renewal is a heartbeat as evidence of the history of an etcd.
type renewal struct {
	version uint64 // the resourceVersion
	history History
}

// versionOf returns a resourceVersion as a number, 0 if it is none.
func versionOf(resourceVersion string) uint64 {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// maxRecent bounds the slices in trail.recent.
const maxRecent = 2000

// A trail records what a list of slices and the watches after it delivered, to resume them in an etcd that may have been
// restored from a backup meanwhile (docs/design/watches.md).
//
// The anchor is a heartbeat of the same history of etcd as the watches. If a later heartbeat includes the anchor, the
// etcd has everything up to the anchor's resourceVersion. What was delivered beyond it may be lost: a resumed watch
// starts from the anchor and must deliver these slices again.
type trail struct {
	// version is the last resourceVersion that was delivered.
	version uint64
	// floor is the least resourceVersion of an anchor, that of the list at first.
	floor  uint64
	anchor renewal // the zero value is none
	// recent are the slices that were delivered beyond the anchor, or the floor without one, with their
	// resourceVersions.
	recent map[string]uint64
	// replay are those that the resumed watch did not deliver again yet. It is to deliver all before it passes until.
	replay map[string]uint64
	until  uint64
}

// newTrail returns the trail of a list.
func newTrail(resourceVersion string) *trail {
	version := versionOf(resourceVersion)
	t := &trail{version: version, floor: version, recent: map[string]uint64{}, replay: map[string]uint64{}}
	if version == 0 {
		t.floor = math.MaxUint64
	}
	return t
}

// setAnchor offers a heartbeat of the same history as an anchor.
func (t *trail) setAnchor(b renewal) {
	if len(t.replay) > 0 || len(b.history) == 0 || b.version < t.floor || b.version <= t.anchor.version ||
		t.anchored() && b.history[0] == t.anchor.history[0] { // something else of the Lease changed
		return
	}
	t.anchor = b
	maps.DeleteFunc(t.recent, func(_ string, version uint64) bool { return version <= b.version })
}

// anchored reports whether the watch can be resumed.
func (t *trail) anchored() bool { return t.anchor.version > 0 }

// resume returns the resourceVersion from which a heartbeat that includes the anchor allows to watch.
func (t *trail) resume() uint64 {
	t.version = min(t.version, t.anchor.version)
	t.until = 0
	for slice, version := range t.recent {
		t.replay[slice] = max(t.replay[slice], version)
	}
	for _, version := range t.replay {
		t.until = max(t.until, version)
	}
	return t.version
}

// proven reports whether everything was delivered again.
func (t *trail) proven() bool { return len(t.replay) == 0 }

// passed reports whether the watch is beyond what it did not deliver again, which is lost.
func (t *trail) passed() bool { return !t.proven() && t.version >= t.until }

// bookmark notes up to which resourceVersion the watch is.
func (t *trail) bookmark(resourceVersion string) {
	t.version = max(t.version, versionOf(resourceVersion))
}

// deliver notes an event. It returns false if the event is older than what was delivered of the slice before, and must
// be ignored.
func (t *trail) deliver(slice, resourceVersion string) bool {
	version := versionOf(resourceVersion)
	if version == 0 {
		t.floor, t.anchor = math.MaxUint64, renewal{}
		return true
	}
	t.version = max(t.version, version)
	if version < t.replay[slice] {
		return false
	}
	delete(t.replay, slice)
	if t.recent[slice] = version; len(t.recent) > maxRecent {
		t.floor, t.anchor = max(t.floor, t.version), renewal{}
		clear(t.recent)
	}
	return true
}
