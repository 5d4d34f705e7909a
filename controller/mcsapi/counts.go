// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// A Fact is what one object adds to the counts. The zero values of the fields that do not matter are left.
type Fact struct {
	// Kind is that of the object.
	Kind string
	// Unreadable is set if the object cannot be decoded.
	Unreadable bool
	// Managed is set for a ServiceImport that this controller created, with its type.
	Managed bool
	Type    v1beta1.ServiceImportType
	// Condition, Status and Reason are those of a condition. A condition with several reasons is a Fact for each.
	Condition, Status, Reason string
}

// Counts returns how many ServiceExports and ServiceImports exist by what is true of them. An object counts for each
// Fact; one with the kind alone counts all objects. Of a ServiceImport that this controller did not create, the
// conditions do not count.
func (a *Access) Counts() map[Fact]int {
	counts := map[Fact]int{}
	count := func(kind string, object metav1.Object, conditions []metav1.Condition) {
		counts[Fact{Kind: kind}]++
		if Unreadable(object) != "" {
			counts[Fact{Kind: kind, Unreadable: true}]++
		}
		for _, condition := range conditions {
			for reason := range strings.SplitSeq(condition.Reason, ",") {
				counts[Fact{
					Kind: kind, Condition: condition.Type, Status: string(condition.Status), Reason: reason,
				}]++
			}
		}
	}
	for _, each := range a.Exports() {
		count(v1beta1.ServiceExportKindName, each, each.Status.Conditions)
	}
	for _, each := range a.Imports() {
		if !a.set.Manages(each) {
			count(v1beta1.ServiceImportKindName, each, nil)
			continue
		}
		count(v1beta1.ServiceImportKindName, each, each.Status.Conditions)
		counts[Fact{Kind: v1beta1.ServiceImportKindName, Managed: true, Type: each.Spec.Type}]++
	}
	return counts
}
