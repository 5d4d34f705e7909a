// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

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

// ours are the words by which an object is one of ours, or tells of us: names, labels, annotations, finalizers, rules.
var ours = []string{"clusterset", "multicluster"}

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
	t.Helper()
	eventually(t, "nothing of ours is left in "+c.Name(), func(ctx context.Context) error {
		after, err := c.inventory(ctx)
		if err != nil {
			return err
		}
		return compare(c.before, after)
	})
}

// compare is an error where there is something else than before, or anything of ours.
func compare(before, after inventory) error {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, there := before[name]
		switch text := after[name]; {
		case there && was == text:
		case slices.ContainsFunc(ours, func(word string) bool { return strings.Contains(name+text, word) }):
			wrong = append(wrong, "this tells of us: "+name+" "+text)
		case !there:
			wrong = append(wrong, "this was not there before: "+name+" "+text)
		default:
			wrong = append(wrong, "this is not as it was: "+name+"\n"+was+"\nbefore, and now\n"+text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			wrong = append(wrong, "this is not there any more: "+name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d differences:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
	return nil
}

// remember makes what there is now what the cluster is to be like in the end.
func (c *cluster) remember(t testing.TB) {
	t.Helper()
	eventually(t, "an inventory of "+c.Name(), func(ctx context.Context) (err error) {
		c.before, err = c.inventory(ctx)
		return err
	})
}
