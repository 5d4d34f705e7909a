// SPDX-License-Identifier: Apache-2.0

package member

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// publishers has the members that publish slices of each service, so that a pass asks a few of hundreds of members.
type publishers struct {
	mu sync.RWMutex
	of map[types.NamespacedName][]*Member
}

// Publishing returns the members that publish slices of a service, in no order. The list is new.
func (s *Members) Publishing(service types.NamespacedName) []*Member {
	s.publishers.mu.RLock()
	defer s.publishers.mu.RUnlock()
	return slices.DeleteFunc(slices.Clone(s.publishers.of[service]), s.left)
}

// left reports whether a member left, or was replaced by one with another credential.
func (s *Members) left(m *Member) bool { return s.Get(m.cluster) != m }

// published notes that slices of a service changed, and tells the handler. The member may have left.
func (s *Members) published(m *Member, service types.NamespacedName) {
	s.publishers.mu.Lock()
	all := slices.DeleteFunc(s.publishers.of[service], func(other *Member) bool { return other == m || s.left(other) })
	if !s.left(m) && m.slices.has(service) {
		all = append(all, m)
	}
	if len(all) > 0 {
		s.publishers.of[service] = all
	} else {
		delete(s.publishers.of, service)
	}
	s.publishers.mu.Unlock()
	s.handler.ServiceChanged(service)
}
