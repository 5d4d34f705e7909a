// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// clusterProperty is the name of the ClusterProperty that holds the id of a
// cluster (KEP-2149).
const clusterProperty = "cluster.clusterset.k8s.io"

// ID returns the cluster id that the ClusterProperty of the local cluster has.
// It retries only while the API server is unavailable.
func ID(ctx context.Context, client dynamic.Interface) (string, error) {
	var id string
	var told bool
	err := wait.ExponentialBackoffWithContext(ctx, patient, func(ctx context.Context) (bool, error) {
		property, err := readClusterProperty(ctx, client)
		var status apierrors.APIStatus
		switch {
		case err == nil:
			id, _, err = unstructured.NestedString(property.Object, "spec", "value")
			return true, err
		case errors.As(err, &status) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err) &&
			!apierrors.IsServiceUnavailable(err) && !apierrors.IsInternalError(err):
			return false, fmt.Errorf("the id of this cluster is unknown: give it with --cluster-id, "+
				"or create the ClusterProperty %s: %w", clusterProperty, err)
		default:
			if !told {
				klog.FromContext(ctx).Info("Waiting for the API server to learn the id of this cluster", "err", err)
				told = true
			}
			return false, nil
		}
	})
	if err != nil {
		return "", err
	}
	if err := member.ValidateID(id); err != nil {
		return "", fmt.Errorf("ClusterProperty %s: %w", clusterProperty, err)
	}
	return id, nil
}

func readClusterProperty(ctx context.Context, client dynamic.Interface) (property *unstructured.Unstructured, err error) {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		resource := schema.GroupVersionResource{Group: "about.k8s.io", Version: version, Resource: "clusterproperties"}
		property, err = client.Resource(resource).Get(ctx, clusterProperty, metav1.GetOptions{})
		if err == nil || !apierrors.IsNotFound(err) {
			return property, err
		}
	}
	return nil, err
}
