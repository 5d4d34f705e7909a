// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// List lists the objects of a resource in the first of the versions that the API server has. An error of the last one is
// that of a missing CustomResourceDefinition, too.
func List(
	ctx context.Context, client dynamic.Interface, resource schema.GroupResource, versions []string, namespace,
	selector string,
) (list *unstructured.UnstructuredList, err error) {
	for _, version := range versions {
		list, err = client.Resource(resource.WithVersion(version)).Namespace(namespace).List(ctx,
			metav1.ListOptions{LabelSelector: selector})
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return list, err
}
