// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// A Made is what a controller made of a multi-cluster service.
type Made struct {
	exported *mcsv1beta1.ServiceExport // nil if the cluster does not export it
	imported *mcsv1beta1.ServiceImport // nil if the cluster does not import it
	derived  *corev1.Service           // nil if headless
	slices   []*discoveryv1.EndpointSlice
}

// Made returns what the controller made, and the ServiceExports.
func (c *Client) Made(ctx context.Context) (all []*Made, err error) {
	byName, byDerived := map[types.NamespacedName]*Made{}, map[types.NamespacedName]*Made{}
	of := func(namespace, name string) *Made {
		service := types.NamespacedName{Namespace: namespace, Name: name}
		if byName[service] == nil {
			byName[service] = &Made{}
			all = append(all, byName[service])
		}
		return byName[service]
	}
	exports, err := c.MCS.MulticlusterV1beta1().ServiceExports("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range exports.Items {
		of(exports.Items[i].Namespace, exports.Items[i].Name).exported = &exports.Items[i]
	}
	imports, err := c.MCS.MulticlusterV1beta1().ServiceImports("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range imports.Items {
		imported := &imports.Items[i]
		made := of(imported.Namespace, imported.Name)
		made.imported = imported
		byDerived[types.NamespacedName{
			Namespace: imported.Namespace, Name: imported.Annotations[mcsv1beta1.GroupName+"/derived-service"],
		}] = made
	}
	services, err := c.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range services.Items {
		derived := &services.Items[i]
		if made := byDerived[types.NamespacedName{Namespace: derived.Namespace, Name: derived.Name}]; made != nil {
			made.derived = derived
		}
	}
	slices, err := c.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: mcsv1beta1.LabelServiceName})
	if err != nil {
		return nil, err
	}
	for i := range slices.Items {
		slice := &slices.Items[i]
		made := of(slice.Namespace, slice.Labels[mcsv1beta1.LabelServiceName])
		made.slices = append(made.slices, slice)
	}
	return all, nil
}

// Copy writes all of it once more, so many services at once, in namespaces of the same names with a prefix, which exist. No
// controller runs.
func (c *Client) Copy(ctx context.Context, all []*Made, prefix string, atOnce int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, made := range all {
		group.Go(func() error { return c.copy(ctx, made, prefix) })
	}
	return group.Wait()
}

// copy copies a service, with as few requests as can be: the derived Service comes first, so that the import has its IPs.
func (c *Client) copy(ctx context.Context, made *Made, prefix string) error {
	fresh := func(from metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: prefix + from.Namespace, Name: from.Name, Labels: from.Labels, Annotations: from.Annotations,
		}
	}
	if made.exported != nil {
		exports := c.MCS.MulticlusterV1beta1().ServiceExports(prefix + made.exported.Namespace)
		exported, err := exports.Create(ctx, &mcsv1beta1.ServiceExport{ObjectMeta: fresh(made.exported.ObjectMeta)},
			metav1.CreateOptions{})
		if err != nil {
			return err
		}
		exported.Status = made.exported.Status
		if _, err := exports.UpdateStatus(ctx, exported, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	var ips []string
	if made.derived != nil {
		spec := made.derived.Spec.DeepCopy()
		spec.ClusterIP, spec.ClusterIPs = "", nil
		derived, err := c.CoreV1().Services(prefix+made.derived.Namespace).Create(ctx,
			&corev1.Service{ObjectMeta: fresh(made.derived.ObjectMeta), Spec: *spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		ips = derived.Spec.ClusterIPs
	}
	if made.imported != nil {
		imports := c.MCS.MulticlusterV1beta1().ServiceImports(prefix + made.imported.Namespace)
		imported := &mcsv1beta1.ServiceImport{ObjectMeta: fresh(made.imported.ObjectMeta), Spec: made.imported.Spec}
		imported.Spec.IPs = ips
		imported, err := imports.Create(ctx, imported, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		imported.Status = made.imported.Status
		if _, err := imports.UpdateStatus(ctx, imported, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	for _, each := range made.slices {
		slice := each.DeepCopy()
		slice.ObjectMeta = fresh(slice.ObjectMeta)
		if _, err := c.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
