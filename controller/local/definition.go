// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// versions that this package can use, the preferred one first.
var versions = []string{"v1beta1", "v1alpha1"}

// definition is the part of a CustomResourceDefinition that matters here.
type definition struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Versions []definedVersion `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

type definedVersion struct {
	Name   string `json:"name"`
	Served bool   `json:"served"`
}

// parseDefinition reads a CustomResourceDefinition. It is an error if the API server does not serve it (yet).
func parseDefinition(crd *unstructured.Unstructured) (*definition, error) {
	parsed := &definition{}
	if crd == nil || crd.GetDeletionTimestamp() != nil {
		return parsed, errors.New("it does not exist")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, parsed); err != nil {
		return parsed, err
	}
	if !meta.IsStatusConditionTrue(parsed.Status.Conditions, "Established") {
		return parsed, errors.New("it is not established")
	}
	return parsed, nil
}

func (d *definition) serves(version string) bool {
	return slices.Contains(d.Spec.Versions, definedVersion{version, true})
}

// negotiate picks the newest version that both definitions serve.
func negotiate(exports, imports *definition) (version string, err error) {
	for _, version := range versions {
		if exports.serves(version) && imports.serves(version) {
			return version, nil
		}
	}
	return "", fmt.Errorf("the CustomResourceDefinitions of %s serve no common version of %v", v1beta1.GroupName, versions)
}
