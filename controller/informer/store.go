// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// store caches what the reflector reads, and calls the handler.
type store struct{ *Informer }

var _ cache.TransformingStore = store{}

// Transformer lets the reflector buffer transformed objects.
func (s store) Transformer() cache.TransformFunc { return s.options.Transform }

// Add caches an object.
func (s store) Add(object any) error { return s.Update(object) }

// Update replaces an object.
func (s store) Update(object any) error {
	object, err := s.options.Transform(object)
	if err != nil {
		return err
	}
	before, _, _ := s.indexer.Get(object) // Update returns the same error
	if err := s.indexer.Update(object); err != nil {
		return err
	}
	s.tell(before, object)
	return nil
}

// Delete removes an object.
func (s store) Delete(object any) error {
	before, exists, _ := s.indexer.Get(object) // Delete returns the same error
	if err := s.indexer.Delete(object); err != nil || !exists {
		return err
	}
	s.tell(before, nil)
	return nil
}

// Replace caches a list, and removes what is not in it. Unchanged objects stay in the cache as they are, and the handler is not
// called for them. The store owns the list.
func (s store) Replace(list []any, resourceVersion string) error {
	gone := map[string]any{}
	for _, key := range s.indexer.ListKeys() {
		gone[key], _, _ = s.indexer.GetByKey(key)
	}
	var changes [][2]any // before and after
	for i, object := range list {
		object, err := s.options.Transform(object)
		if err != nil {
			return err
		}
		key, err := cache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return fmt.Errorf("a list of %s: %w", s.options.Resource, err)
		}
		before := gone[key]
		delete(gone, key)
		if before != nil && same(before, object) {
			object = before
		} else {
			changes = append(changes, [2]any{before, object})
		}
		list[i] = object
	}
	for _, before := range gone {
		changes = append(changes, [2]any{before, nil})
	}
	s.gate.moves()
	if err := s.indexer.Replace(list, resourceVersion); err != nil {
		return err
	}
	s.synced.Store(true)
	for _, each := range changes {
		s.tell(each[0], each[1])
	}
	s.gate.set(s.Informer, false)
	return nil
}

// Resync does nothing: the handler is not called for unchanged objects.
func (s store) Resync() error { return nil }

// same compares two states of an object. Equal resourceVersions do not prove equal content: an etcd that was restored
// from a backup reuses resourceVersions.
func same(a, b any) bool {
	if slice, ok := a.(*export.Packed); ok {
		return slice.Equal(b.(*export.Packed))
	}
	return handled(a).GetResourceVersion() == handled(b).GetResourceVersion() && equality.Semantic.DeepEqual(a, b)
}
