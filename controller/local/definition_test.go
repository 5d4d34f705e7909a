// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/mcs-api/config/crd"
)

// parse reads a CustomResourceDefinition as an API server would have it.
func parse(t *testing.T, text []byte, conditions ...any) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		t.Fatal(err)
	}
	if len(conditions) == 0 {
		conditions = []any{map[string]any{"type": "Established", "status": "True"}}
	}
	if err := unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestToday(t *testing.T) {
	for name, text := range map[string][]byte{"exports": crd.ServiceExportCRD, "imports": crd.ServiceImportCRD} {
		definition, err := parseDefinition(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range versions {
			if !definition.serves(version) {
				t.Errorf("%s: no version %s", name, version)
			}
		}
	}
}

func TestDefinitionsThatCannotBeUsed(t *testing.T) {
	deleted := parse(t, crd.ServiceExportCRD)
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)
	for name, definition := range map[string]*unstructured.Unstructured{
		"not established": parse(t, crd.ServiceExportCRD, map[string]any{"type": "Established", "status": "False"}),
		"no conditions":   parse(t, crd.ServiceExportCRD, map[string]any{"type": "NamesAccepted", "status": "True"}),
		"being deleted":   deleted,
		"none":            nil,
	} {
		if _, err := parseDefinition(definition); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNegotiate(t *testing.T) {
	of := func(served string) *definition {
		of := &definition{}
		for _, version := range []string{"v1alpha1", "v1beta1", "v2"} {
			of.Spec.Versions = append(of.Spec.Versions, struct {
				Name   string `json:"name"`
				Served bool   `json:"served"`
			}{version, strings.Contains(served, version)})
		}
		return of
	}
	for _, test := range []struct{ exports, imports, want string }{
		{"v1alpha1 v1beta1", "v1beta1 v1alpha1", "v1beta1"},
		{"v1alpha1", "v1alpha1", "v1alpha1"},
		{"v1alpha1 v1beta1", "v1alpha1", "v1alpha1"},
		{"v1beta1", "v1alpha1", ""},
		{"v2", "v2", ""},
		{"", "", ""},
	} {
		got, err := negotiate(of(test.exports), of(test.imports))
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q and %q: got %q, %v, want %q", test.exports, test.imports, got, err, test.want)
		}
	}
}
