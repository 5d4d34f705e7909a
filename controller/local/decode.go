// SPDX-License-Identifier: Apache-2.0

package local

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// decode returns an object as it is cached. A schema may accept a value that the Go type does not, such as the time
// "2026-01-01t00:00:00Z" in a condition, and one such object must not prevent all others from being read. It is cached without
// its status, which the controller writes itself. A spec that cannot be decoded, which the schemas of the MCS API do not
// accept, is left out, too: the controller rewrites the spec of an import, and an export has no exported metadata then.
func decode[T any](object any) (any, error) {
	read, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // it is decoded already
	}
	unstructured.RemoveNestedField(read.Object, "metadata", "managedFields")
	into := new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, into)
	for _, field := range []string{"status", "spec"} {
		if err == nil {
			break
		}
		klog.Background().Error(err, "Cannot decode an object; the field is not read", "field", field, "kind", read.GetKind(),
			"object", klog.KObj(read))
		delete(read.Object, field)
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, into)
	}
	return into, err
}
