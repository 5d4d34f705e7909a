// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
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
	before, exists, err := s.indexer.Get(object)
	if err != nil {
		return err
	}
	if err := s.indexer.Update(object); err != nil {
		return err
	}
	if !exists {
		before = nil
	}
	s.tell(before, object, false)
	return nil
}

// Delete removes an object.
func (s store) Delete(object any) error {
	before, exists, err := s.indexer.Get(object)
	if err != nil {
		return err
	}
	if err := s.indexer.Delete(object); err != nil || !exists {
		return err
	}
	s.tell(before, nil, false)
	return nil
}

// Replace caches a list, and removes what is not in it. The handler is not called for unchanged objects. The store owns
// the list.
func (s store) Replace(list []any, resourceVersion string) error {
	cached := map[string]any{}
	for _, object := range s.indexer.List() {
		key, err := cache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return err
		}
		cached[key] = object
	}
	type change struct{ before, after any }
	var changed []change
	for i, object := range list {
		object, err := s.options.Transform(object)
		if err != nil {
			return err
		}
		key, err := cache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return fmt.Errorf("an object of a list of %s: %w", s.options.Resource, err)
		}
		if before := cached[key]; before != nil && same(before, object) {
			object = before
		} else {
			changed = append(changed, change{before, object})
		}
		delete(cached, key)
		list[i] = object
	}
	for _, gone := range cached {
		changed = append(changed, change{before: gone})
	}

	first := !s.read()
	s.gate.begins(s.Informer)
	if err := s.indexer.Replace(list, resourceVersion); err != nil {
		return err
	}
	for _, each := range changed {
		s.tell(each.before, each.after, first)
	}
	s.gate.ends(s.Informer)
	if first {
		close(s.synced)
	}
	return nil
}

// Resync does nothing: the handler is not called for unchanged objects.
func (s store) Resync() error { return nil }

// same compares two states of an object. Equal resourceVersions do not prove equal content: an etcd that was restored
// from a backup reuses resourceVersions.
func same(a, b any) bool {
	if slice, ok := a.(*export.Packed); ok {
		listed, ok := b.(*export.Packed)
		return ok && slice.Equal(listed)
	}
	one, err := meta.Accessor(a)
	if err != nil {
		return false
	}
	other, err := meta.Accessor(b)
	return err == nil && one.GetResourceVersion() == other.GetResourceVersion() && equality.Semantic.DeepEqual(a, b)
}
