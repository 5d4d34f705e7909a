// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"
)

// CRDs says which versions of ServiceExport and ServiceImport are served.
type CRDs int

const (
	// CRDsAll is what the mcs-api module has: v1alpha1 and v1beta1, stored as v1beta1.
	CRDsAll CRDs = iota
	// CRDsV1alpha1 is v1alpha1 alone, as implementations of some years ago install it.
	CRDsV1alpha1
	// CRDsNone is a cluster without the Multi-Cluster Services API.
	CRDsNone
)

var (
	crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	mcsGroup    = "multicluster.x-k8s.io"
)

// InstallCRDs creates or changes the CRDs of the Multi-Cluster Services API, or removes them (CRDsNone), and
// returns once the API server serves that. Removing them removes all objects of theirs.
// The garbage collector notices new CRDs within 30 seconds. The API server refuses to go from CRDsAll to CRDsV1alpha1
// directly, since it has stored another version.
func (c *Cluster) InstallCRDs(ctx context.Context, crds CRDs) error {
	if err := c.installCRDs(ctx, crds); err != nil {
		return fmt.Errorf("cluster %s: %w", c.options.Name, err)
	}
	return nil
}

func (c *Cluster) installCRDs(ctx context.Context, crds CRDs) error {
	var definitions []*unstructured.Unstructured
	for _, encoded := range [][]byte{crd.ServiceExportCRD, crd.ServiceImportCRD} {
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(encoded, &definition.Object); err != nil {
			return fmt.Errorf("decode a CRD of the mcs-api module: %w", err)
		}
		if err := c.installCRD(ctx, definition.DeepCopy(), crds); err != nil {
			return fmt.Errorf("install CRD %s: %w", definition.GetName(), err)
		}
		definitions = append(definitions, definition)
	}
	for _, definition := range definitions {
		err := c.poll(ctx, "CRD "+definition.GetName(), func(ctx context.Context) error { return c.crdServed(ctx, definition, crds) })
		if err != nil {
			return err
		}
	}
	return nil
}

// installCRD writes one of the module's CRDs, reduced to the versions that are asked for.
func (c *Cluster) installCRD(ctx context.Context, definition *unstructured.Unstructured, crds CRDs) error {
	client, name := c.dynamic.Resource(crdResource), definition.GetName()
	if crds == CRDsNone {
		if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
	var kept []any
	for name, version := range versions(definition) {
		if crds.serve(name) {
			version["storage"] = version["storage"] == true || crds == CRDsV1alpha1
			kept = append(kept, version)
		}
	}
	if err := unstructured.SetNestedSlice(definition.Object, kept, "spec", "versions"); err != nil {
		return err
	}
	_, err := client.Apply(ctx, name, definition, metav1.ApplyOptions{FieldManager: "controlplane", Force: true})
	return err
}

// versions are those of one of the module's CRDs, which remain part of it.
func versions(definition *unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, version := range definition.Object["spec"].(map[string]any)["versions"].([]any) {
		version := version.(map[string]any)
		all[version["name"].(string)] = version
	}
	return all
}

// serve tells whether the version with the given name is to be served.
func (c CRDs) serve(version string) bool {
	return c == CRDsAll || c == CRDsV1alpha1 && version == "v1alpha1"
}

// crdServed is nil once exactly those versions of the CRD are served, by name and in discovery, that are asked for.
func (c *Cluster) crdServed(ctx context.Context, definition *unstructured.Unstructured, crds CRDs) error {
	plural, _, _ := strings.Cut(definition.GetName(), ".")
	for name := range versions(definition) {
		gvr := schema.GroupVersionResource{Group: mcsGroup, Version: name, Resource: plural}
		_, err := c.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		served := err == nil
		resources, err := c.clientset.Discovery().ServerResourcesForGroupVersion(gvr.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		listed := err == nil && slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == plural })
		if want := crds.serve(name); served != want || listed != want {
			return fmt.Errorf("version %s: served is %t, in discovery %t", name, served, listed)
		}
	}
	return nil
}
