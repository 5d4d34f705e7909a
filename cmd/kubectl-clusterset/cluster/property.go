// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Property is the id in the ClusterProperty of the cluster (KEP-2149), empty if
// there is none.
func (c *Cluster) Property(ctx context.Context) (string, error) {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		property, err := c.Dynamic.Resource(schema.GroupVersionResource{
			Group: "about.k8s.io", Version: version, Resource: "clusterproperties",
		}).Get(ctx, "cluster.clusterset.k8s.io", metav1.GetOptions{})
		if err == nil {
			value, _, err := unstructured.NestedString(property.Object, "spec", "value")
			return value, err
		}
		if !apierrors.IsNotFound(err) {
			return "", err
		}
	}
	return "", nil
}
