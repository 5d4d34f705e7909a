// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"
)

// installCRDs creates the CRDs of the Multi-Cluster Services API, and returns once the API server serves them.
func (c *Cluster) installCRDs(ctx context.Context) error {
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	for resource, encoded := range map[string][]byte{
		"serviceexports": crd.ServiceExportCRD, "serviceimports": crd.ServiceImportCRD,
	} {
		definition := &unstructured.Unstructured{}
		err := yaml.Unmarshal(encoded, &definition.Object)
		if err == nil {
			_, err = c.dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{})
		}
		if err == nil {
			err = c.poll(ctx, "the CRD", func(ctx context.Context) error {
				_, err := c.dynamic.Resource(v1beta1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{Limit: 1})
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("install the CRD of %s: %w", resource, err)
		}
	}
	return nil
}
