// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// markUnreadable is an annotation that only exists in memory: what an API server has under this key is dropped.
const markUnreadable = export.Domain + "/unreadable"

// Unreadable returns why the spec of a cached object could not be decoded, empty if it could. Of such an object only
// the metadata is known.
func Unreadable(object metav1.Object) string { return object.GetAnnotations()[markUnreadable] }

// decode returns what is cached of an object. A schema accepts what the Go type does not, such as the time
// "2026-01-01t00:00:00Z" in a condition, and one such object must not keep all others from being read: it is cached
// without its status, which the controller writes itself, or if its spec cannot be decoded with its metadata alone,
// marked.
func decode[T any](object any) (any, error) {
	read, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // it is decoded already
	}
	unstructured.RemoveNestedField(read.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(read.Object, "metadata", "annotations", markUnreadable)
	into := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, into) == nil {
		return into, nil
	}
	delete(read.Object, "status")
	into, err := fromJSON[T](read.Object) // its errors name the field
	if err == nil {
		return into, nil
	}
	delete(read.Object, "spec")
	annotations := read.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[markUnreadable] = err.Error()
	read.SetAnnotations(annotations)
	return fromJSON[T](read.Object)
}

func fromJSON[T any](object map[string]any) (*T, error) {
	into := new(T)
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	return into, err
}
