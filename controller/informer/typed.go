// SPDX-License-Identifier: Apache-2.0

package informer

import "k8s.io/client-go/tools/cache"

// Get returns an object of a cache, or nil if it does not exist.
func Get[T any](from cache.Indexer, key string) (object T) {
	if found, exists, err := from.GetByKey(key); err == nil && exists {
		object, _ = found.(T)
	}
	return object
}

// List returns all objects of a cache, in no order.
func List[T any](from cache.Indexer) []T { return typed[T](from.List()) }

// ByIndex returns the objects of a cache with a value in an index, in no order.
func ByIndex[T any](from cache.Indexer, index, value string) []T {
	objects, err := from.ByIndex(index, value)
	if err != nil {
		return nil // only an unknown index is an error
	}
	return typed[T](objects)
}

func typed[T any](objects []any) []T {
	result := make([]T, 0, len(objects))
	for _, object := range objects {
		if one, ok := object.(T); ok {
			result = append(result, one)
		}
	}
	return result
}
