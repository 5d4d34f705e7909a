// SPDX-License-Identifier: Apache-2.0

// Package manifest has the prerequisite objects of a cluster, and applies them.
package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/deploy"
)

// OfMembers are the RBAC objects of the credentials with which other clusters read
// this one.
func OfMembers(namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := parse(deploy.Rights)
	for _, object := range objects {
		move(object, namespace)
	}
	return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetName() != MemberAccount
	}), err
}

// MemberAccount is the service account with which other clusters read this one, and
// the name of its roles and bindings.
const MemberAccount = "clusterset-member"

func parse(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case object.Object != nil:
			objects = append(objects, object)
		}
	}
}

// move puts an object of the controller's namespace into another one.
func move(object *unstructured.Unstructured, namespace string) {
	if object.GetKind() == "Namespace" && object.GetName() == names.Namespace {
		object.SetName(namespace)
	}
	if object.GetNamespace() == names.Namespace {
		object.SetNamespace(namespace)
	}
	subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
	if err != nil || subjects == nil {
		return
	}
	for _, each := range subjects {
		if subject, ok := each.(map[string]any); ok && subject["namespace"] == names.Namespace {
			subject["namespace"] = namespace
		}
	}
	object.Object["subjects"] = subjects
}

// resources of the kinds that are applied.
var resources = map[string]string{
	"Namespace": "namespaces", "ServiceAccount": "serviceaccounts",
	"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles",
	"RoleBinding": "rolebindings",
}

// Apply writes objects of the rights. dryRun is that of metav1.ApplyOptions.
func Apply(ctx context.Context, client dynamic.Interface, objects []*unstructured.Unstructured, manager string,
	dryRun []string,
) error {
	for _, object := range objects {
		kind := object.GroupVersionKind()
		resource, ok := resources[kind.Kind]
		if !ok {
			return fmt.Errorf("%s %s: unsupported kind", kind.Kind, object.GetName())
		}
		var of dynamic.ResourceInterface = client.Resource(schema.GroupVersionResource{
			Group:   kind.Group,
			Version: kind.Version, Resource: resource,
		})
		if namespace := object.GetNamespace(); namespace != "" {
			of = client.Resource(schema.GroupVersionResource{
				Group: kind.Group, Version: kind.Version,
				Resource: resource,
			}).Namespace(namespace)
		}
		if _, err := of.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{
			FieldManager: manager, Force: true,
			DryRun: dryRun,
		}); err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
	return nil
}
