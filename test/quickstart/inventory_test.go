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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// An inventory has the content of every object of a cluster by kind and name, without status, without the fields that
// Kubernetes counts, and without managers. It omits Events, which the API server deletes after a time.
type inventory map[string]string

// inventory lists all resources that the cluster serves.
func (c *cluster) inventory(ctx context.Context) (inventory, error) {
	config := c.Config()
	config.WarningHandlerWithContext = rest.NoWarnings{} // about deprecated versions
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := c.Client().Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	all := inventory{}
	for _, group := range resources {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Kind == "Event" ||
				resource.Kind == "ComponentStatus" {
				continue
			}
			all["resource "+version.Group+"/"+resource.Name] = ""
			objects, err := client.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // its CRD is being deleted
			}
			if err != nil {
				return nil, err
			}
			for i := range objects.Items {
				name, text, err := describe(&objects.Items[i])
				if err != nil {
					return nil, err
				}
				if name = version.Group + "/" + name; all[name] != "" && all[name] != text {
					text = all[name] + "\n" + text // pods of the same owner with different content
				}
				all[name] = text
			}
		}
	}
	return all, nil
}

// describe returns the kind and name of an object, and its content.
func describe(object *unstructured.Unstructured) (name, text string, err error) {
	name = fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
	switch object.GetKind() {
	case "Pod":
		// Pods are replaced: only the existence of a pod of the owner is compared.
		for _, owner := range object.GetOwnerReferences() {
			name = fmt.Sprintf("Pod %s/ of %s %s", object.GetNamespace(), owner.Kind, owner.Name)
		}
		unstructured.RemoveNestedField(object.Object, "spec")
		object.SetName("")
		object.SetGenerateName("")
		labels := object.GetLabels()
		// copied from the node
		maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, "topology.kubernetes.io/") })
		object.SetLabels(labels)
	case "Lease", "Endpoints", "EndpointSlice":
		for _, field := range []string{"spec", "subsets", "endpoints"} {
			unstructured.RemoveNestedField(object.Object, field)
		}
	}
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "deployment.kubernetes.io/") || strings.HasPrefix(key, "endpoints.kubernetes.io/")
	})
	if len(annotations) == 0 {
		annotations = nil // like an object that never had any
	}
	object.SetAnnotations(annotations)
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	encoded, err := json.Marshal(object.Object)
	return name, string(encoded), err
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
