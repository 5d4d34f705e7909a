// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// Put carries out a write. It may be repeated.
func Put(ctx context.Context, cluster dynamic.Interface, write Write) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(write.Object)
	if err != nil {
		return fmt.Errorf("encode %s %s: %w", write.Resource, write.Object.GetName(), err)
	}
	object := &unstructured.Unstructured{Object: content}
	delete(object.Object, "status")
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	client := cluster.Resource(resource).Namespace(object.GetNamespace())
	if write.Delete {
		if err := client.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
	_, err = client.Create(ctx, object, metav1.CreateOptions{})
	for apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) { // the controller writes conditions of exports
		was, missing := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if missing != nil {
			return missing
		}
		object.SetResourceVersion(was.GetResourceVersion())
		_, err = client.Update(ctx, object, metav1.UpdateOptions{})
	}
	return err
}
