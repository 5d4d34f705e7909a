// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// versions that this package can use, the preferred one first.
var versions = []string{"v1beta1", "v1alpha1"}

// A Schema is what a CustomResourceDefinition keeps of an object. The zero
// value keeps everything.
type Schema struct {
	root map[string]any
}

// keep returns the object without what the schema would drop or refuse for its
// length. The result shares nothing with a changed object, and is the object
// itself where nothing changes.
func keep[T any](s Schema, object *T) (*T, error) {
	if s.root == nil {
		return object, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	changed := false
	for field, value := range content {
		switch field {
		case "apiVersion", "kind", "metadata":
		default:
			sub, kept := property(s.root, field)
			if !kept {
				delete(content, field)
				changed = true
				continue
			}
			pruned, less := prune(sub, value)
			content[field] = pruned
			changed = changed || less
		}
	}
	if !changed {
		return object, nil
	}
	result := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, result); err != nil {
		return nil, err
	}
	return result, nil
}

// prune removes unknown fields and surplus items, in place where it can, and
// tells whether there were any.
func prune(schema map[string]any, value any) (kept any, less bool) {
	switch value := value.(type) {
	case map[string]any:
		for field, child := range value {
			sub, kept := property(schema, field)
			if !kept {
				delete(value, field)
				less = true
				continue
			}
			pruned, lost := prune(sub, child)
			value[field] = pruned
			less = less || lost
		}
	case []any:
		if most, ok := number(schema["maxItems"]); ok && int64(len(value)) > most {
			value = value[:most]
			less = true
		}
		items, _ := schema["items"].(map[string]any)
		for i := range value {
			pruned, lost := prune(items, value[i])
			value[i] = pruned
			less = less || lost
		}
		return value, less
	}
	return value, less
}

// property returns the schema of a field, and whether it is kept.
func property(schema map[string]any, field string) (map[string]any, bool) {
	if properties, ok := schema["properties"].(map[string]any); ok {
		if sub, ok := properties[field].(map[string]any); ok {
			return sub, true
		}
	}
	switch additional := schema["additionalProperties"].(type) {
	case map[string]any:
		return additional, true
	case bool:
		return nil, additional
	}
	if preserve, ok := schema["x-kubernetes-preserve-unknown-fields"].(bool); ok && preserve {
		return nil, true
	}
	// A schema that says nothing of its fields keeps none, unless there is
	// no schema at all.
	return nil, schema == nil
}

func number(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

// goneError says that a definition is not there, rather than not usable: what
// was made by it is gone, by the word of an administrator.
type goneError struct{ name, how string }

func (e *goneError) Error() string {
	return "the CustomResourceDefinition " + e.name + " " + e.how
}

// definition is the part of a CustomResourceDefinition that matters here.
type definition struct {
	schemas map[string]Schema // by served version
}

// parseDefinition reads a CustomResourceDefinition. It is an error if the API
// server does not serve it (yet).
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
	result := definition{schemas: map[string]Schema{}}
	for _, each := range served {
		version, _ := each.(map[string]any)
		name, _ := version["name"].(string)
		if on, _ := version["served"].(bool); !on || name == "" {
			continue
		}
		root, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if err != nil {
			return definition{}, fmt.Errorf("the schema of CustomResourceDefinition %s: %w", crd.GetName(), err)
		}
		result.schemas[name] = Schema{root: root}
	}
	return result, nil
}

// negotiate picks the newest version that both definitions serve.
func negotiate(exports, imports definition) (version string, err error) {
	for _, version := range versions {
		_, one := exports.schemas[version]
		_, other := imports.schemas[version]
		if one && other {
			return version, nil
		}
	}
	return "", fmt.Errorf("the CustomResourceDefinitions of %s serve no common version of %v", Group, versions)
}
