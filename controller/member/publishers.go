// SPDX-License-Identifier: Apache-2.0

package member

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Publishing returns the members that publish slices of a service, in no order. The list is new.
func (s *Members) Publishing(service types.NamespacedName) []*Member {
	s.publishing.RLock()
	defer s.publishing.RUnlock()
	return slices.DeleteFunc(slices.Clone(s.publishers[service]), s.left)
}

// left reports whether a member left, or was replaced by one with another credential.
func (s *Members) left(m *Member) bool { return s.Get(m.cluster) != m }

// slicesChanged updates publishers after slices of a service changed, and notifies the handler. The member may have left.
func (s *Members) slicesChanged(m *Member, service types.NamespacedName) {
	s.publishing.Lock()
	all := slices.DeleteFunc(s.publishers[service], func(other *Member) bool { return other == m || s.left(other) })
	if !s.left(m) && m.Encoded(service) > 0 {
		all = append(all, m)
	}
	if len(all) > 0 {
		s.publishers[service] = all
	} else {
		delete(s.publishers, service)
	}
	s.publishing.Unlock()
	s.handler.ServiceChanged(service)
}
