// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"
)

// TestParseDefinition reads the CustomResourceDefinitions of today as an API server may have them.
func TestParseDefinition(t *testing.T) {
	for name, test := range map[string]struct {
		metadata, condition string
		usable              bool
	}{
		"usable":          {"", "{type: Established, status: 'True'}", true},
		"not established": {"", "{type: Established, status: 'False'}", false},
		"no condition":    {"", "{type: NamesAccepted, status: 'True'}", false},
		"being deleted":   {"deletionTimestamp: 2026-01-01T00:00:00Z", "{type: Established, status: 'True'}", false},
	} {
		for _, text := range [][]byte{crd.ServiceExportCRD, crd.ServiceImportCRD} {
			object := &unstructured.Unstructured{}
			for _, part := range []string{string(text), "{metadata: {" + test.metadata + "}, status: {conditions: [" + test.condition + "]}}"} {
				if err := yaml.Unmarshal([]byte(part), &object.Object); err != nil {
					t.Fatal(err)
				}
			}
			parsed, err := parseDefinition(object)
			if (err == nil) != test.usable || test.usable && (!parsed.serves("v1alpha1") || !parsed.serves("v1beta1")) {
				t.Errorf("%s: got %+v, %v", name, parsed.Spec, err)
			}
		}
	}
	if _, err := parseDefinition(nil); err == nil {
		t.Error("a definition that does not exist is no error")
	}
}

func TestNegotiate(t *testing.T) {
	of := func(served string) *definition {
		of := &definition{}
		for _, version := range []string{"v1alpha1", "v1beta1", "v2"} {
			of.Spec.Versions = append(of.Spec.Versions, definedVersion{version, strings.Contains(served, version)})
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
