// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// remembered is the copies of members' slices that speak for a member which is
// not seen or not believed. The copies belong to the ServiceImport, so that
// Kubernetes' garbage collector removes them with it; what the member
// contributed stays all the same, as long as this process remembers it.
//
// The slices are those that the caches hold, so that remembering them costs
// little until the caches lose them. It is safe for concurrent use; of one
// service by one goroutine at a time.
type remembered struct {
	mu sync.Mutex
	// copies are by service, source cluster and name.
	copies map[types.NamespacedName]map[string]map[string]*discoveryv1.EndpointSlice
	// removed are the copies that this process itself deleted and that the
	// caches may still show.
	removed map[types.NamespacedName]map[types.UID]bool
}

// removing notes that this process deletes a copy, which is not to come back.
func (r *remembered) removing(service types.NamespacedName, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.removed == nil {
		r.removed = map[types.NamespacedName]map[types.UID]bool{}
	}
	if r.removed[service] == nil {
		r.removed[service] = map[types.UID]bool{}
	}
	r.removed[service][uid] = true
}

// keeping notes that a copy that was to be deleted is wanted again: the deletion
// failed.
func (r *remembered) keeping(service types.NamespacedName, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.removed[service], uid)
}

// of returns the copies of a cluster's slices for a service that count: of
// those that exist, and of those remembered that no longer do. They are
// remembered from now on, and the others are not.
func (r *remembered) of(service types.NamespacedName, cluster string, existing []*discoveryv1.EndpointSlice, counts func(name string) bool) []*discoveryv1.EndpointSlice {
	r.mu.Lock()
	defer r.mu.Unlock()
	copies := r.copies[service][cluster]
	if copies == nil && len(existing) > 0 {
		copies = map[string]*discoveryv1.EndpointSlice{}
		if r.copies == nil {
			r.copies = map[types.NamespacedName]map[string]map[string]*discoveryv1.EndpointSlice{}
		}
		if r.copies[service] == nil {
			r.copies[service] = map[string]map[string]*discoveryv1.EndpointSlice{}
		}
		r.copies[service][cluster] = copies
	}
	for _, slice := range existing {
		if !r.removed[service][slice.UID] {
			copies[slice.Name] = slice
		}
	}
	maps.DeleteFunc(copies, func(name string, _ *discoveryv1.EndpointSlice) bool { return !counts(name) })
	return slices.Collect(maps.Values(copies))
}

// forget forgets the copies of a cluster's slices for a service: the cluster
// speaks for itself, or contributes nothing.
func (r *remembered) forget(service types.NamespacedName, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.copies[service], cluster)
	if len(r.copies[service]) == 0 {
		delete(r.copies, service)
	}
}

// retain forgets what is remembered of a service apart from what these
// clusters contribute, and the deletions that the caches show by now: existing
// is all that they have.
func (r *remembered) retain(service types.NamespacedName, clusters []string, existing []*discoveryv1.EndpointSlice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.copies[service], func(cluster string, _ map[string]*discoveryv1.EndpointSlice) bool {
		return !slices.Contains(clusters, cluster)
	})
	if len(r.copies[service]) == 0 {
		delete(r.copies, service)
	}
	maps.DeleteFunc(r.removed[service], func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(existing, func(slice *discoveryv1.EndpointSlice) bool { return slice.UID == uid })
	})
	if len(r.removed[service]) == 0 {
		delete(r.removed, service)
	}
}

// services returns the services of which copies of a cluster's slices are
// remembered, in a new list.
func (r *remembered) services(cluster string) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var services []types.NamespacedName
	for service, clusters := range r.copies {
		if clusters[cluster] != nil {
			services = append(services, service)
		}
	}
	return services
}
