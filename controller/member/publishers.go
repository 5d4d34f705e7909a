// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// putSlice stores a slice, unless the limits refuse it.
func (m *Member) putSlice(slice *discoveryv1.EndpointSlice) { m.changed(m.Put(export.Strip(slice))) }

func (m *Member) removeSlice(slice *discoveryv1.EndpointSlice) { m.changed(m.Remove(slice)) }

func (m *Member) changed(services []types.NamespacedName) {
	for _, service := range services {
		m.set.slicesChanged(m, service)
	}
}

// replace makes a complete list visible. uid is the UID of the listed cluster. The handler is notified only of services that
// changed. The Tracker calls Show, so that it judges the list before any verdict is read.
func (m *Member) replace(ctx context.Context, list *limits.List, uid string) {
	before := m.Synced()
	var changed []types.NamespacedName
	m.set.config.Tracker.Listed(m, uid, list.Services(), func() { changed = m.Show(list) })
	m.changed(changed)
	if !before && m.Synced() {
		klog.FromContext(ctx).Info("Member synced", "slices", m.Published())
		m.set.handler.MemberChanged(m.cluster)
	}
}

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
