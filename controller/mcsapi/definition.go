// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// versions that this package can use, the preferred one first.
var versions = []string{"v1beta1", "v1alpha1"}

// goneError says that a definition is not there, rather than not usable: what
// was made by it is gone, by the word of an administrator.
type goneError struct{ name, how string }

func (e *goneError) Error() string {
	return "the CustomResourceDefinition " + e.name + " " + e.how
}

// definition is the part of a CustomResourceDefinition that matters here.
type definition struct {
	served     []string // versions
	generation string   // differs if the schemas do
}

// parseDefinition reads a CustomResourceDefinition. It is an error if the API server does not serve it (yet).
func parseDefinition(crd *unstructured.Unstructured) (definition, error) {
	if crd.GetDeletionTimestamp() != nil {
		return definition{}, &goneError{crd.GetName(), "is being deleted"}
	}
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return definition{}, fmt.Errorf("the CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	established := false
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		established = established || condition["type"] == "Established" && condition["status"] == "True"
	}
	if !established {
		return definition{}, fmt.Errorf("the CustomResourceDefinition %s is not established", crd.GetName())
	}
	served, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return definition{}, fmt.Errorf("the CustomResourceDefinition %s: %w", crd.GetName(), err)
	}
	result := definition{generation: fmt.Sprintf("%s/%d", crd.GetUID(), crd.GetGeneration())}
	for _, each := range served {
		version, _ := each.(map[string]any)
		name, _ := version["name"].(string)
		if on, _ := version["served"].(bool); !on || name == "" {
			continue
		}
		result.served = append(result.served, name)
	}
	return result, nil
}

// negotiate picks the newest version that both definitions serve.
func negotiate(exports, imports definition) (version string, err error) {
	for _, version := range versions {
		if slices.Contains(exports.served, version) && slices.Contains(imports.served, version) {
			return version, nil
		}
	}
	return "", fmt.Errorf("the CustomResourceDefinitions of %s serve no common version of %v", Group, versions)
}
