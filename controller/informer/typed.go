// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Of is an Informer that caches objects of a type. They are shared and must not be changed.
type Of[T any] struct{ *Informer }

// Get returns an object, or nil if it does not exist.
func (o Of[T]) Get(key types.NamespacedName) (object T) {
	found, _, _ := o.indexer.GetByKey(cache.ObjectName(key).String()) // an indexer returns no error
	object, _ = found.(T)
	return object
}

// List returns all objects, in no order.
func (o Of[T]) List() []T { return typed[T](o.indexer.List()) }

// ByIndex returns the objects with a value in an index, in no order.
func (o Of[T]) ByIndex(index, value string) []T {
	objects, _ := o.indexer.ByIndex(index, value) // only an unknown index is an error
	return typed[T](objects)
}

func typed[T any](objects []any) []T {
	result := make([]T, len(objects))
	for i, object := range objects {
		result[i] = object.(T)
	}
	return result
}
