// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// An inventory has the content of every object of a cluster by kind and name, without status, without the fields that
// Kubernetes counts, and without managers. It omits Events and pods, which Kubernetes replaces, and the content of Leases
// and EndpointSlices.
type inventory map[string]string

// inventory lists all resources that the cluster serves.
func (c *cluster) inventory(ctx context.Context) (inventory, error) {
	resources, err := c.Client().Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	all := inventory{}
	for _, group := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, resources) {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range group.APIResources {
			if slices.Contains([]string{"ComponentStatus", "Endpoints", "Event", "Pod"}, resource.Kind) {
				continue
			}
			all["resource "+version.Group+"/"+resource.Name] = ""
			objects, err := c.Dynamic().Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // its CRD is being deleted
			}
			if err != nil {
				return nil, err
			}
			for i := range objects.Items {
				each := &objects.Items[i]
				name := fmt.Sprintf("%s/%s %s/%s", version.Group, resource.Kind, each.GetNamespace(), each.GetName())
				if all[name], err = content(each); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

func content(object *unstructured.Unstructured) (string, error) {
	if slices.Contains([]string{"EndpointSlice", "Lease"}, object.GetKind()) {
		return "", nil
	}
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/") })
	if len(annotations) == 0 {
		annotations = nil // like an object that never had any
	}
	object.SetAnnotations(annotations)
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	encoded, err := json.Marshal(object.Object)
	return string(encoded), err
}

// expectNothingLeft waits until the cluster has the objects that it had at its start, or when remember was called.
func (c *cluster) expectNothingLeft(t testing.TB) {
	eventually(t, "nothing of ours is left in "+c.Name(), func(ctx context.Context) error {
		after, err := c.inventory(ctx)
		if difference := cmp.Diff(c.before, after); err == nil && difference != "" {
			err = errors.New(difference)
		}
		return err
	})
}

// remember makes expectNothingLeft compare with the current objects.
func (c *cluster) remember(t testing.TB) {
	eventually(t, "an inventory of "+c.Name(), func(ctx context.Context) (err error) {
		c.before, err = c.inventory(ctx)
		return err
	})
}
