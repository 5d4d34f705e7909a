// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// MCSVersion is the version of the MCS API that the cluster serves, the newest one that is supported, empty if it serves none.
func (c *Cluster) MCSVersion(ctx context.Context) (string, error) {
	client := discovery.ToDiscoveryInterfaceWithContext(c.Kube.Discovery())
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		_, err := client.ServerResourcesForGroupVersionWithContext(ctx, v1beta1.GroupName+"/"+version)
		switch {
		case err == nil:
			return version, nil
		case !apierrors.IsNotFound(err):
			return "", err
		}
	}
	return "", nil
}

// ApplyCRDs is the command that installs the CRDs of the MCS API.
func (c *Cluster) ApplyCRDs() string {
	return "kubectl --context " + c.Context + " apply --server-side --force-conflicts -f deploy/chart/files/crds"
}

// ServiceExports returns a client of ServiceExports, and their version. It is an error if the MCS API is not served.
func (c *Cluster) ServiceExports(ctx context.Context, namespace string) (dynamic.ResourceInterface, string, error) {
	version, err := c.MCSVersion(ctx)
	if err != nil {
		return nil, "", err
	}
	if version == "" {
		return nil, "", fmt.Errorf("the MCS API is not served: apply its CRDs with `%s`", c.ApplyCRDs())
	}
	client := c.Dynamic.Resource(schema.GroupVersionResource{
		Group: v1beta1.GroupName, Version: version, Resource: v1beta1.ServiceExportPluralName,
	})
	return client.Namespace(namespace), version, nil
}

// CreateServiceExport creates a ServiceExport from its metadata. dryRun is the DryRun of metav1.CreateOptions.
func (c *Cluster) CreateServiceExport(ctx context.Context, of metav1.ObjectMeta, dryRun []string) error {
	client, version, err := c.ServiceExports(ctx, of.Namespace)
	if err != nil {
		return err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupName + "/" + version, Kind: v1beta1.ServiceExportKindName},
		ObjectMeta: of,
	})
	if err == nil {
		_, err = client.Create(ctx, &unstructured.Unstructured{Object: object},
			metav1.CreateOptions{FieldManager: FieldManager, DryRun: dryRun})
	}
	return err
}
