// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
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

// full is an import with everything in it that the controller writes.
func full() *v1beta1.ServiceImport {
	return &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", Labels: map[string]string{"a": "b"}, Generation: 3},
		Spec: v1beta1.ServiceImportSpec{
			Type:                  v1beta1.ClusterSetIP,
			IPs:                   []string{"192.0.2.1", "2001:db8::1"},
			IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			Ports:                 []v1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, AppProtocol: ptr.To("http")}},
			SessionAffinity:       corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(int32(5))}},
			InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyCluster),
			TrafficDistribution:   ptr.To("PreferClose"),
		},
		Status: v1beta1.ServiceImportStatus{
			EndpointSliceObjects: v1beta1.EndpointSliceObjectsPresent,
			Clusters:             []v1beta1.ClusterStatus{{Cluster: "east"}},
			Conditions:           []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: 3}},
		},
	}
}

func TestToday(t *testing.T) {
	for name, text := range map[string][]byte{"exports": crd.ServiceExportCRD, "imports": crd.ServiceImportCRD} {
		definition, err := parseDefinition(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range versions {
			if _, ok := definition.schemas[version]; !ok {
				t.Errorf("%s: no version %s", name, version)
			}
		}
	}
	definition, err := parseDefinition(parse(t, crd.ServiceImportCRD))
	if err != nil {
		t.Fatal(err)
	}
	object := full()
	kept, err := keep(definition.schemas["v1beta1"], object)
	if err != nil {
		t.Fatal(err)
	}
	if kept != object {
		t.Errorf("today's schema drops something:\n%s", cmp.Diff(object, kept))
	}
}

func TestOldSchemaKeepsLess(t *testing.T) {
	text, err := os.ReadFile("testdata/serviceimports-old.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition, err := parseDefinition(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	object := full()
	kept, err := keep(definition.schemas["v1alpha1"], object)
	if err != nil {
		t.Fatal(err)
	}
	want := full()
	want.Spec.IPs = want.Spec.IPs[:1]
	want.Spec.IPFamilies = nil
	want.Spec.InternalTrafficPolicy = nil
	want.Spec.TrafficDistribution = nil
	want.Status = v1beta1.ServiceImportStatus{Clusters: want.Status.Clusters}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(full(), object); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
	again, err := keep(definition.schemas["v1alpha1"], kept)
	if err != nil || again != kept {
		t.Errorf("a second time something is dropped: %v %v", again, err)
	}
}

func TestPrune(t *testing.T) {
	for name, test := range map[string]struct{ schema, value, want string }{
		"unknown field":             {`{properties: {a: {}}}`, `{a: 1, b: 2}`, `{a: 1}`},
		"nothing said":              {`{}`, `{a: 1}`, `{}`},
		"any value of a type":       {`{additionalProperties: {type: string}}`, `{a: x, b: y}`, `{a: x, b: y}`},
		"any value":                 {`{additionalProperties: true}`, `{a: {b: 1}}`, `{a: {b: 1}}`},
		"no other value":            {`{properties: {a: {}}, additionalProperties: false}`, `{a: 1, b: 1}`, `{a: 1}`},
		"preserved":                 {`{x-kubernetes-preserve-unknown-fields: true}`, `{a: {b: 1}}`, `{a: {b: 1}}`},
		"deep":                      {`{properties: {a: {properties: {b: {}}}}}`, `{a: {b: 1, c: 2}}`, `{a: {b: 1}}`},
		"in a list":                 {`{properties: {a: {items: {properties: {b: {}}}}}}`, `{a: [{b: 1, c: 2}]}`, `{a: [{b: 1}]}`},
		"a list that may be longer": {`{properties: {a: {maxItems: 2}}}`, `{a: [1]}`, `{a: [1]}`},
		"a list that is too long":   {`{properties: {a: {maxItems: 2}}}`, `{a: [1, 2, 3]}`, `{a: [1, 2]}`},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text string) map[string]any {
				object := map[string]any{}
				if err := yaml.Unmarshal([]byte(text), &object); err != nil {
					t.Fatal(err)
				}
				return object
			}
			got, less := prune(read(test.schema), read(test.value))
			if diff := cmp.Diff(any(read(test.want)), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if less != (test.value != test.want) {
				t.Errorf("it tells %t", less)
			}
		})
	}
}

func TestDefinitionsThatCannotBeUsed(t *testing.T) {
	deleted := parse(t, crd.ServiceExportCRD)
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)
	for name, test := range map[string]struct {
		definition *unstructured.Unstructured
		gone       bool
	}{
		"not established": {parse(t, crd.ServiceExportCRD, map[string]any{"type": "Established", "status": "False"}), false},
		"no conditions":   {parse(t, crd.ServiceExportCRD, map[string]any{"type": "NamesAccepted", "status": "True"}), false},
		"being deleted":   {deleted, true},
	} {
		_, err := parseDefinition(test.definition)
		if err == nil || gone(err) != test.gone {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNegotiate(t *testing.T) {
	of := func(served string) definition {
		d := definition{schemas: map[string]Schema{}}
		for version := range strings.FieldsSeq(served) {
			d.schemas[version] = Schema{}
		}
		return d
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
	if !gone(errors.Join(&goneError{"x", "is gone"})) {
		t.Error("a joined error is not seen")
	}
}
