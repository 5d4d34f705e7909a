// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

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
