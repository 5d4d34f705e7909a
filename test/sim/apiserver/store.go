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

// An event is what happened to one object in one revision. Its objects are never changed.
type event struct {
	revision      int64
	at            time.Time
	eventType     watch.EventType
	groupResource schema.GroupResource
	key           string
	// object is the new state, or the last one of an object that was deleted,
	// with the revision of the event. previous is nil for an object that is new.
	object, previous runtime.Object
	frames           *frames
}

// A store holds what exists in each revision since the last compaction, as etcd does. Objects in it are never changed.
type store struct {
	revision  int64
	compacted int64
	// cached is the revision from which on watches can begin: when the API server started.
	cached  int64
	objects map[schema.GroupResource]map[string]runtime.Object
	// log has the events after the revision compacted, oldest first.
	log []event
	// streams are the open watches of each resource. They are given each event
	// when it happens, so that a compaction takes none from them.
	streams map[schema.GroupResource]map[*stream]struct{}
}

// compactEvery is how often an API server compacts its store (kube-apiserver's --etcd-compaction-interval): what is
// older than that may be gone, and what is twice as old is.
const compactEvery = 5 * time.Minute

// firstRevision is where a store begins. As in etcd, revisions that were never given out mean nothing.
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

// write stores an object, which belongs to the store from then on, and returns
// it with its new revision. eventType tells how.
func (s *store) write(eventType watch.EventType, resource schema.GroupResource, object runtime.Object) runtime.Object {
	s.revision++
	access(object).SetResourceVersion(strconv.FormatInt(s.revision, 10))
	each := event{
		revision: s.revision, at: time.Now(), eventType: eventType, groupResource: resource, key: keyOf(object),
		object: object, frames: &frames{of: map[frame][]byte{}},
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
		if each.revision > w.from && w.concerns(each) {
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

// endIf ends watches: in order, or broken off by an error.
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

// at returns the objects of a resource by key as they were in a revision that is not compacted.
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

// compact forgets what was before a revision.
func (s *store) compact(revision int64) {
	s.log = slices.Clone(s.after(revision))
	s.compacted = max(s.compacted, min(revision, s.revision))
}

// An Event is a change of one object. Object is the store's and must not be
// changed; of an object that was deleted it is the last state.
type Event struct {
	At       time.Time
	Type     watch.EventType
	Resource schema.GroupResource
	Object   runtime.Object
}

// After returns what happened after a revision, oldest first, and the present
// revision. What was compacted, or lost by Restore, is missing.
func (s *Server) After(revision int64) (events []Event, present int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.store.after(revision) {
		events = append(events, Event{each.at, each.eventType, each.groupResource, each.object})
	}
	return events, s.store.revision
}
