// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// An event is a change of one object in one revision. Its objects are immutable.
type event struct {
	revision      int64
	at            time.Time
	eventType     watch.EventType
	groupResource schema.GroupResource
	key           string
	// object is the new state or, for a deletion, the last state with the revision of the event. previous is nil for a
	// new object.
	object, previous runtime.Object
}

// A store has the state of each revision since the last compaction, as etcd does. Its objects are immutable.
type store struct {
	revision  int64
	compacted int64
	// cached is the oldest revision at which watches can begin: the revision when the API server started.
	cached  int64
	objects map[schema.GroupResource]map[string]runtime.Object
	// log has the events after revision compacted, oldest first.
	log []event
	// streams are the open watches of each resource. They get each event when it happens, so a compaction does not take
	// events from them.
	streams map[schema.GroupResource]map[*stream]struct{}
}

// compactEvery is the interval at which an API server compacts its store (kube-apiserver's --etcd-compaction-interval).
// Revisions older than one interval may be gone; revisions older than two intervals are.
const compactEvery = 5 * time.Minute

// firstRevision is the first revision of a store. As in etcd, revisions that were never assigned mean nothing.
const firstRevision = 100

func newStore() store {
	return store{
		revision: firstRevision, compacted: firstRevision,
		objects: map[schema.GroupResource]map[string]runtime.Object{},
		streams: map[schema.GroupResource]map[*stream]struct{}{},
	}
}

func (s *store) get(resource schema.GroupResource, key string) runtime.Object {
	return s.objects[resource][key]
}

// write stores an object, which must not be changed afterwards, and returns it with its new revision. eventType is the
// type of the change.
func (s *store) write(eventType watch.EventType, resource schema.GroupResource, object runtime.Object) runtime.Object {
	s.revision++
	access(object).SetResourceVersion(strconv.FormatInt(s.revision, 10))
	each := event{
		revision: s.revision, at: time.Now(), eventType: eventType, groupResource: resource, key: keyOf(object),
		object: object,
	}
	objects := s.objects[resource]
	if objects == nil {
		objects = map[string]runtime.Object{}
		s.objects[resource] = objects
	}
	each.previous = objects[each.key]
	if eventType == watch.Deleted {
		delete(objects, each.key)
	} else {
		objects[each.key] = object
	}
	s.log = append(s.log, each)
	if old := s.log[0]; each.at.Sub(old.at) > 2*compactEvery {
		first, _ := slices.BinarySearchFunc(s.log, each.at.Add(-compactEvery),
			func(e event, at time.Time) int { return e.at.Compare(at) })
		s.compact(s.log[first].revision - 1)
	}
	for w := range s.streams[resource] {
		if w.concerns(each) {
			w.pending = append(w.pending, each)
			w.wake()
		}
	}
	return object
}

func (s *store) open(w *stream) {
	resource := w.target.Resource
	if s.streams[resource] == nil {
		s.streams[resource] = map[*stream]struct{}{}
	}
	s.streams[resource][w] = struct{}{}
}

func (s *store) close(w *stream) { delete(s.streams[w.target.Resource], w) }

// end ends the watches of a resource.
func (s *store) end(resource schema.GroupResource) {
	s.endIf(func(w *stream) bool { return w.target.Resource == resource }, nil)
}

func (s *store) endAll() { s.endIf(func(*stream) bool { return true }, nil) }

// endIf ends watches: normally, or with an error that breaks them off.
func (s *store) endIf(concerned func(*stream) bool, err error) {
	for _, streams := range s.streams {
		for w := range streams {
			if concerned(w) {
				w.ended, w.broken = true, err
				w.wake()
				delete(streams, w)
			}
		}
	}
}

// at returns the objects of a resource by key, as of a revision that is not compacted.
func (s *store) at(resource schema.GroupResource, revision int64) map[string]runtime.Object {
	objects := maps.Clone(s.objects[resource])
	for _, each := range slices.Backward(s.log) {
		if each.revision <= revision {
			break
		}
		switch {
		case each.groupResource != resource:
		case each.previous == nil:
			delete(objects, each.key)
		default:
			objects[each.key] = each.previous
		}
	}
	return objects
}

// after returns the events after a revision that is not compacted.
func (s *store) after(revision int64) []event {
	begin, _ := slices.BinarySearchFunc(s.log, revision, func(each event, revision int64) int {
		if each.revision <= revision {
			return -1
		}
		return 1
	})
	return s.log[begin:len(s.log):len(s.log)]
}

// compact discards the events up to a revision.
func (s *store) compact(revision int64) {
	s.log = slices.Clone(s.after(revision))
	s.compacted = max(s.compacted, min(revision, s.revision))
}

// An Event is a change of one object. Object belongs to the store and must not be changed. For a deletion it is the
// last state.
type Event struct {
	At       time.Time
	Type     watch.EventType
	Resource schema.GroupResource
	Object   runtime.Object
}

// After returns the events after a revision, oldest first, and the current revision. Compacted events, and events that
// Restore discarded, are missing.
func (s *Server) After(revision int64) (events []Event, present int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.store.after(revision) {
		events = append(events, Event{each.at, each.eventType, each.groupResource, each.object})
	}
	return events, s.store.revision
}
