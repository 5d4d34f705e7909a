// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"

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
// The garbage collector notices new CRDs within 30 seconds.
func (c *Cluster) InstallCRDs(ctx context.Context, crds CRDs) error {
	if err := c.installCRDs(ctx, crds); err != nil {
		return fmt.Errorf("cluster %s: %w", c.options.Name, err)
	}
	return nil
}

func (c *Cluster) installCRDs(ctx context.Context, crds CRDs) error {
	var names []string
	for _, encoded := range [][]byte{crd.ServiceExportCRD, crd.ServiceImportCRD} {
		definition, err := decodeCRD(encoded, crds)
		if err != nil {
			return err
		}
		names = append(names, definition.GetName())
		if crds == CRDsNone {
			err = c.dynamic.Resource(crdResource).Delete(ctx, definition.GetName(), metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				err = nil
			}
		} else {
			_, err = c.dynamic.Resource(crdResource).Apply(ctx, definition.GetName(), definition, metav1.ApplyOptions{FieldManager: "controlplane", Force: true})
		}
		if err != nil {
			return fmt.Errorf("install CRD %s: %w", definition.GetName(), err)
		}
	}
	for _, name := range names {
		err := c.poll(ctx, "CRD "+name, func(ctx context.Context) error { return c.crdServed(ctx, name, crds) })
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeCRD reads one of the module's CRDs, reduced to the versions that are asked for.
func decodeCRD(encoded []byte, crds CRDs) (*unstructured.Unstructured, error) {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(encoded, &definition.Object); err != nil {
		return nil, fmt.Errorf("decode a CRD of the mcs-api module: %w", err)
	}
	if crds != CRDsV1alpha1 {
		return definition, nil
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return nil, fmt.Errorf("read the versions of CRD %s: %w", definition.GetName(), err)
	}
	for _, version := range versions {
		if version, ok := version.(map[string]any); ok && version["name"] == "v1alpha1" {
			version["storage"] = true
			return definition, unstructured.SetNestedSlice(definition.Object, []any{version}, "spec", "versions")
		}
	}
	return nil, fmt.Errorf("CRD %s of the mcs-api module has no version v1alpha1", definition.GetName())
}

// crdServed is nil once the API server does with the CRD as it should.
func (c *Cluster) crdServed(ctx context.Context, name string, crds CRDs) error {
	definition, err := c.dynamic.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
	if crds == CRDsNone {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	}
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return c.listed(ctx, definition)
		}
	}
	return fmt.Errorf("not established: %v", conditions)
}

// listed is nil once objects of the definition can be listed in each of its versions.
func (c *Cluster) listed(ctx context.Context, definition *unstructured.Unstructured) error {
	resource, _, err := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	if err != nil {
		return err
	}
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, version := range versions {
		version, ok := version.(map[string]any)
		if !ok {
			continue
		}
		name, _, err := unstructured.NestedString(version, "name")
		if err != nil {
			return err
		}
		gvr := schema.GroupVersionResource{Group: mcsGroup, Version: name, Resource: resource}
		if _, err := c.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}
