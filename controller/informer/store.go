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
	before, _, err := s.indexer.Get(object)
	if err != nil {
		return err
	}
	if err := s.indexer.Update(object); err != nil {
		return err
	}
	s.tell(before, object)
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
	s.tell(before, nil)
	return nil
}

// Replace caches a list, and removes what is not in it. The handler is not called for unchanged objects. The store owns
// the list.
func (s store) Replace(list []any, resourceVersion string) error {
	for i, object := range list {
		var err error
		if list[i], err = s.options.Transform(object); err != nil {
			return err
		}
	}
	changes, err := Changes(s.indexer, list)
	if err != nil {
		return fmt.Errorf("a list of %s: %w", s.options.Resource, err)
	}
	s.gate.catchesUp(s.Informer)
	if err := s.indexer.Replace(list, resourceVersion); err != nil {
		return err
	}
	for _, each := range changes {
		s.tell(each.Before, each.After)
	}
	s.gate.set(s.Informer, false)
	if !s.read() {
		close(s.synced)
	}
	return nil
}

// A Change is a change of an object: Before is nil for an object that is new, and After for one that is gone.
type Change struct{ Before, After any }

// Changes returns what a complete list changes in a cache. It replaces unchanged objects of the list by those of the
// cache.
func Changes(in cache.Indexer, list []any) (changes []Change, _ error) {
	cached := map[string]any{}
	for _, object := range in.List() {
		key, err := cache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return nil, err
		}
		cached[key] = object
	}
	for i, object := range list {
		key, err := cache.MetaNamespaceKeyFunc(object)
		if err != nil {
			return nil, err
		}
		if before := cached[key]; before != nil && same(before, object) {
			list[i] = before
		} else {
			changes = append(changes, Change{before, object})
		}
		delete(cached, key)
	}
	for _, gone := range cached {
		changes = append(changes, Change{Before: gone})
	}
	return changes, nil
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
