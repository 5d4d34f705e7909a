// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// TestServedVersion reads the CustomResourceDefinitions of today as an API server may have them.
func TestServedVersion(t *testing.T) {
	const usable, both = "status: {conditions: [{type: Established, status: 'True'}]}", "v1beta1 v1alpha1"
	for _, test := range []struct{ exports, imports, change, want, missing string }{
		{both, both, usable, "v1beta1", ""},
		{"v1alpha1", "v1alpha1", usable, "v1alpha1", ""},
		{both, "v1alpha1", usable, "v1alpha1", ""},
		{"v1beta1", "v1alpha1", usable, "", "no common version"},
		{"v2", "v2", usable, "", "no common version"},
		{"", "", usable, "", "no common version"},
		{both, both, "status: {conditions: [{type: Established, status: 'False'}]}", "", "serviceimports.multicluster.x-k8s.io: it is not established"},
		{both, both, "status: {conditions: [{type: NamesAccepted, status: 'True'}]}", "", "it is not established; the"},
		{both, both, usable + "\nmetadata: {deletionTimestamp: 2026-01-01T00:00:00Z}", "", "it does not exist; the"},
		{both, "none", usable, "", "the CustomResourceDefinition serviceimports.multicluster.x-k8s.io: it does not exist"},
	} {
		a := NewAPI(nil, nil, dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), &informer.FreshnessGate{})
		for i, text := range [][]byte{crd.ServiceExportCRD, crd.ServiceImportCRD} {
			served := []string{test.exports, test.imports}[i]
			if served == "none" {
				continue
			}
			object := &unstructured.Unstructured{}
			for _, part := range []string{string(text), test.change} {
				must(t, yaml.Unmarshal([]byte(part), &object.Object))
			}
			object.SetName(names[i])
			of, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
			of = append(of, map[string]any{"name": "v2"})
			for _, version := range of {
				version := version.(map[string]any)
				version["served"] = strings.Contains(served, version["name"].(string))
			}
			must(t, unstructured.SetNestedSlice(object.Object, of, "spec", "versions"))
			must(t, a.definitions[i].Indexer().Add(object))
		}
		now, missing := a.look()
		if now.version != test.want || !strings.Contains(missing, test.missing) || (missing == "") != (test.want != "") {
			t.Errorf("%v: got %v, %s", test, now, missing)
		}
	}
}

// must ends the test if there is an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
