// SPDX-License-Identifier: Apache-2.0

package local

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// decode returns what is cached of an object. A schema accepts what the Go type does not, such as the time
// "2026-01-01t00:00:00Z" in a condition, and one such object must not keep all others from being read. Such an object is
// cached without its status, which the controller writes itself. A spec that cannot be decoded, which only other schemas than
// those of the MCS API accept, is left out, too: the controller writes that of an import anew, and an export has no
// exported metadata.
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
