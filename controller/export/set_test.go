// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func TestParseSet(t *testing.T) {
	for name, valid := range map[string]bool{
		"": true, "blue": true, "blue-1": true, "1": true, strings.Repeat("a", 63): true,
		"Blue": false, "a.b": false, "-a": false, "a b": false, strings.Repeat("a", 64): false,
	} {
		if set, err := ParseSet(name); (err == nil) != valid || valid && string(set) != name {
			t.Errorf("%q: got %q, %v", name, string(set), err)
		}
	}
}

// TestSets: what one set marks, no other set manages, and its selector selects nothing else.
func TestSets(t *testing.T) {
	all := []Set{"", "blue", "green"}
	for _, marks := range all {
		for _, before := range append(all, "other") {
			for _, object := range []metav1.Object{&v1beta1.ServiceImport{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}} {
				if IsManaged(object) {
					t.Errorf("%T without labels is managed", object)
				}
				if before != "other" {
					before.Mark(object)
				}
				marks.Mark(object)
				for _, reads := range all {
					selector, err := labels.Parse(reads.Selector())
					if err != nil {
						t.Fatal(err)
					}
					if reads.Manages(object) != (reads == marks) ||
						selector.Matches(labels.Set(object.GetLabels())) != (reads == marks) || !IsManaged(object) {
						t.Errorf("%s marked %T %v; %s manages it: %t", marks, object, object.GetLabels(), reads,
							reads.Manages(object))
					}
				}
			}
		}
	}
	for _, row := range []struct {
		object    metav1.Object
		labels    map[string]string
		byDefault bool
		byBlue    bool
		any       bool
	}{
		{&corev1.Service{}, map[string]string{LabelManagedBy: Manager, LabelSet: "blue"}, true, false, true},
		{&corev1.Service{}, map[string]string{LabelManagedBy: NamedManager}, false, false, true},
		{&corev1.Service{}, map[string]string{LabelSet: "blue"}, false, false, false},
		{&corev1.Service{}, map[string]string{LabelSliceManagedBy: NamedManager, LabelSet: "blue"}, false, false, false},
		{&discoveryv1.EndpointSlice{}, map[string]string{LabelManagedBy: NamedManager, LabelSet: "blue"}, false, false, false},
	} {
		row.object.SetLabels(row.labels)
		if Set("").Manages(row.object) != row.byDefault || Set("blue").Manages(row.object) != row.byBlue ||
			IsManaged(row.object) != row.any {
			t.Errorf("%T %v", row.object, row.labels)
		}
	}
}

func TestTakes(t *testing.T) {
	namespace := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	for _, row := range []struct {
		namespace *corev1.Namespace
		want      map[Set]bool
	}{
		{nil, nil},
		{namespace(nil), map[Set]bool{"": true}},
		{namespace(map[string]string{LabelSet: ""}), map[Set]bool{"": true}},
		{namespace(map[string]string{LabelSet: "blue"}), map[Set]bool{"blue": true}},
		{namespace(map[string]string{LabelSet: "Blue"}), nil},
	} {
		for _, set := range []Set{"", "blue", "green"} {
			if set.Takes(row.namespace) != row.want[set] {
				t.Errorf("%v: %s takes it: %t", row.namespace, set, set.Takes(row.namespace))
			}
		}
	}
}

// TestSlicesOfAnotherSet: a reader reads the slices of its set, and no others. A reader that does not know of sets looks at
// the managed-by label alone, and reads none of a named set.
func TestSlicesOfAnotherSet(t *testing.T) {
	view := mustView(t, newExport(), newService("80/TCP"), newSlice("a", "8080/TCP", "10.1.0.1"))
	for _, marks := range []Set{"", "blue", "green"} {
		published := publish(view)
		for _, slice := range published {
			marks.Mark(slice)
			if (slice.Labels[LabelSliceManagedBy] == Manager) != (marks == "") {
				t.Errorf("%s marks %v", marks, slice.Labels)
			}
		}
		for _, reads := range []Set{"", "blue", "green"} {
			from := Source{Cluster: view.Cluster, Set: reads}
			got, found := FromSlices(from, web, published, nil)
			if (got != nil) != (reads == marks) || len(found) > 0 {
				t.Errorf("of %s, %s reads %v, %v", marks, reads, got, found)
			}
		}
	}
}
