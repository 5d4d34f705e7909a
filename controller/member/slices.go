// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

const byService = "service"

// newIndexer returns an indexer of slices by service.
func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		byService: func(obj any) ([]string, error) {
			return []string{export.ServiceOf(obj.(*export.Packed).OpenMetadata()).String()}, nil
		},
	})
}

// Synced reports whether the member's slices were listed since it joined or its credential changed. It never turns
// false again: a silent member stays as last seen.
func (m *Member) Synced() bool { return m.synced.Load() }

// Slices returns the slices that the member publishes for a service, in no order, as new objects.
func (m *Member) Slices(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return export.OpenAll(m.packed(service))
}

// Read returns the Slices as they are stored. They are not complete until the member was listed, and while a limit withholds
// an imported service.
func (m *Member) Read(service types.NamespacedName) (published []*export.Packed, complete bool) {
	return m.packed(service), m.Synced() && !m.account.IsWithheld(service)
}

// Encoded returns how large the Slices of a service are in encoded form, 0 if there are none. It decodes none.
func (m *Member) Encoded(service types.NamespacedName) int {
	return export.EncodedSize(m.packed(service))
}

// packed returns the slices of a service as they are stored.
func (m *Member) packed(service types.NamespacedName) []*export.Packed {
	return informer.ByIndex[*export.Packed](m.indexer, byService, service.String())
}

// has reports whether there is a slice of a service.
func (m *Member) has(service types.NamespacedName) bool { return len(m.packed(service)) > 0 }

// slice returns a slice, nil if there is none. The object is new.
func (m *Member) slice(namespace, name string) *discoveryv1.EndpointSlice {
	if slice := informer.Get[*export.Packed](m.indexer, namespace+"/"+name); slice != nil {
		return slice.Open()
	}
	return nil
}

// Services returns every service with a published slice.
func (m *Member) Services() (services []types.NamespacedName) {
	for _, value := range m.indexer.ListIndexFuncValues(byService) {
		namespace, name, err := cache.SplitMetaNamespaceKey(value)
		if err == nil && name != "" {
			services = append(services, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return services
}

// Account counts what the member contributes, and has what of it is left out.
func (m *Member) Account() *limits.Account { return m.account }

// Published returns the number of slices that the member publishes.
func (m *Member) Published() int { return len(m.indexer.ListKeys()) }

// put stores a slice, unless the limits refuse it: then the old one stays.
func (m *Member) put(slice *discoveryv1.EndpointSlice) {
	slice = export.Strip(slice)
	packed := export.Pack(slice)
	old := m.slice(slice.Namespace, slice.Name)
	service := export.ServiceOf(slice)
	switch {
	case service.Name == "":
		m.remove(slice) // it belongs to no service anymore
		return
	case old != nil && export.Pack(old).Equal(packed):
		return
	case old != nil && export.ServiceOf(old) != service:
		m.remove(old)
		old = nil
	}
	if m.account.Admit(service, old, slice) {
		_ = m.indexer.Update(packed) // only an object without a key is an error
		m.set.slicesChanged(m, service)
	}
}

func (m *Member) remove(slice *discoveryv1.EndpointSlice) {
	old := m.slice(slice.Namespace, slice.Name)
	if old == nil {
		m.account.Remove(export.ServiceOf(slice), nil)
		return
	}
	_ = m.indexer.Delete(slice)
	m.account.Remove(export.ServiceOf(old), old)
	m.set.slicesChanged(m, export.ServiceOf(old))
}

// replace takes over a complete list of the cluster with a UID. The handler is told only of services that changed.
func (m *Member) replace(ctx context.Context, list *limits.List, uid string) error {
	objects := list.Slices()
	changes, err := informer.Changes(m.indexer, objects)
	if err != nil {
		return err
	}
	changed := map[types.NamespacedName]struct{}{}
	for _, change := range changes {
		for _, object := range []any{change.Before, change.After} {
			if slice, ok := object.(*export.Packed); ok {
				changed[export.ServiceOf(slice.OpenMetadata())] = struct{}{}
			}
		}
	}
	first := false
	show := func() {
		err = m.indexer.Replace(objects, "")
		for service := range m.account.Commit(list) {
			changed[service] = struct{}{} // it may be gone
		}
		first = !m.synced.Swap(true)
	}
	m.listed.Store(&uid)
	if m.set.config.Tracker.Listed(m, uid, list.Services(), show) {
		m.listed.Store(nil) // it may be incomplete: no watch is opened again without another list
	}
	for service := range changed {
		m.set.slicesChanged(m, service)
	}
	if first {
		klog.FromContext(ctx).Info("Member synced", "slices", m.Published())
		m.set.handler.MemberChanged(m.cluster)
	}
	return err
}
