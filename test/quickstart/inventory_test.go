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

// An inventory is every object of a cluster: what it is and what it says. Events are left out, which the API server
// forgets by itself, and the status of objects, the versions and fields that Kubernetes counts, and who wrote them.
type inventory map[string]string

// inventory walks over all resources that the cluster serves.
func (c *cluster) inventory(ctx context.Context) (inventory, error) {
	config := c.Config()
	config.WarningHandlerWithContext = rest.NoWarnings{} // of kinds that are deprecated
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
				continue // a CRD that goes
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
					text = all[name] + "\n" + text // of pods of one owner that differ
				}
				all[name] = text
			}
		}
	}
	return all, nil
}

// describe says what an object is, and what it says.
func describe(object *unstructured.Unstructured) (name, text string, err error) {
	name = fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
	switch object.GetKind() {
	case "Pod":
		// Pods come and go; that there is one of its owner is what stays.
		for _, owner := range object.GetOwnerReferences() {
			name = fmt.Sprintf("Pod %s/ of %s %s", object.GetNamespace(), owner.Kind, owner.Name)
		}
		unstructured.RemoveNestedField(object.Object, "spec")
		object.SetName("")
		object.SetGenerateName("")
		labels := object.GetLabels()
		// of the node
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
		annotations = nil // as where there never was one
	}
	object.SetAnnotations(annotations)
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	encoded, err := json.Marshal(object.Object)
	return name, string(encoded), err
}

// expectNothingLeft waits until the cluster is as it was when it started, or since remember.
func (c *cluster) expectNothingLeft(t testing.TB) {
	eventually(t, "nothing of ours is left in "+c.Name(), func(ctx context.Context) error {
		after, err := c.inventory(ctx)
		if difference := cmp.Diff(c.before, after); err == nil && difference != "" {
			err = errors.New(difference)
		}
		return err
	})
}

// remember makes what there is now what the cluster is to be like in the end.
func (c *cluster) remember(t testing.TB) {
	eventually(t, "an inventory of "+c.Name(), func(ctx context.Context) (err error) {
		c.before, err = c.inventory(ctx)
		return err
	})
}
