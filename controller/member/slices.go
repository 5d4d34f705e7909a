// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// put stores a slice, unless the limits refuse it.
func (m *Member) put(slice *discoveryv1.EndpointSlice) { m.changed(m.Put(export.Strip(slice))) }

func (m *Member) remove(slice *discoveryv1.EndpointSlice) { m.changed(m.Remove(slice)) }

func (m *Member) changed(services []types.NamespacedName) {
	for _, service := range services {
		m.set.slicesChanged(m, service)
	}
}

// replace makes a complete list visible, and reports whether it lacks a known service. uid is the UID of the listed cluster.
// The handler is notified only of services that changed.
func (m *Member) replace(ctx context.Context, list *limits.List, uid string) (lacks bool) {
	before := m.Synced()
	var changed []types.NamespacedName
	lacks = m.set.config.Tracker.Listed(m, uid, list.Services(), func() { changed = m.Show(list) })
	m.changed(changed)
	if !before && m.Synced() {
		klog.FromContext(ctx).Info("Member synced", "slices", m.Published())
		m.set.handler.MemberChanged(m.cluster)
	}
	return lacks
}
