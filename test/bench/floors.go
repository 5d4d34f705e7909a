// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
)

// made has the objects that a controller wrote for a multi-cluster service, and the ServiceExport.
type made struct {
	exported *mcsv1beta1.ServiceExport // nil if the cluster does not export it
	imported *mcsv1beta1.ServiceImport // nil if the cluster does not import it
	derived  *corev1.Service           // nil if headless
	slices   []*discoveryv1.EndpointSlice
}

// madeIn returns the objects that the controller of a cluster wrote, and the ServiceExports.
func madeIn(ctx context.Context, c *fleet.Client) (all []*made, err error) {
	byName := map[types.NamespacedName]*made{}
	of := func(namespace, name string) *made {
		service := types.NamespacedName{Namespace: namespace, Name: name}
		if byName[service] == nil {
			byName[service] = &made{}
			all = append(all, byName[service])
		}
		return byName[service]
	}
	mcs := c.MCS.MulticlusterV1beta1()
	exports, err1 := mcs.ServiceExports("").List(ctx, metav1.ListOptions{})
	imports, err2 := mcs.ServiceImports("").List(ctx, metav1.ListOptions{})
	services, err3 := c.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	slices, err4 := c.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: mcsv1beta1.LabelServiceName})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	for i := range exports.Items {
		of(exports.Items[i].Namespace, exports.Items[i].Name).exported = &exports.Items[i]
	}
	for i := range imports.Items {
		of(imports.Items[i].Namespace, imports.Items[i].Name).imported = &imports.Items[i]
	}
	for i := range services.Items {
		if service := services.Items[i].Labels[export.LabelService]; service != "" {
			of(services.Items[i].Namespace, service).derived = &services.Items[i]
		}
	}
	for i := range slices.Items {
		slice := &slices.Items[i]
		m := of(slice.Namespace, slice.Labels[mcsv1beta1.LabelServiceName])
		m.slices = append(m.slices, slice)
	}
	return all, nil
}

// copyAll writes copies of the objects of atOnce services in parallel, into existing namespaces with a prefix. No
// controller may run.
func copyAll(ctx context.Context, c *fleet.Client, all []*made, prefix string, atOnce int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, m := range all {
		group.Go(func() error { return m.copy(ctx, c, prefix) })
	}
	return group.Wait()
}

// copy copies a service with the fewest possible requests: the derived Service comes first, so that the import has its IPs.
func (m *made) copy(ctx context.Context, c *fleet.Client, prefix string) error {
	fresh := func(from metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: prefix + from.Namespace, Name: from.Name, Labels: from.Labels, Annotations: from.Annotations,
		}
	}
	mcs := c.MCS.MulticlusterV1beta1()
	if m.exported != nil {
		exports := mcs.ServiceExports(prefix + m.exported.Namespace)
		exported, err := exports.Create(ctx, &mcsv1beta1.ServiceExport{ObjectMeta: fresh(m.exported.ObjectMeta)}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		exported.Status = m.exported.Status
		if _, err := exports.UpdateStatus(ctx, exported, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	var ips []string
	if m.derived != nil {
		spec := m.derived.Spec.DeepCopy()
		spec.ClusterIP, spec.ClusterIPs = "", nil
		derived, err := c.CoreV1().Services(prefix+m.derived.Namespace).Create(ctx,
			&corev1.Service{ObjectMeta: fresh(m.derived.ObjectMeta), Spec: *spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		ips = derived.Spec.ClusterIPs
	}
	if m.imported != nil {
		imports := mcs.ServiceImports(prefix + m.imported.Namespace)
		imported := &mcsv1beta1.ServiceImport{ObjectMeta: fresh(m.imported.ObjectMeta), Spec: m.imported.Spec}
		imported.Spec.IPs = ips
		imported, err := imports.Create(ctx, imported, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		imported.Status = m.imported.Status
		if _, err := imports.UpdateStatus(ctx, imported, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	for _, each := range m.slices {
		slice := each.DeepCopy()
		slice.ObjectMeta = fresh(slice.ObjectMeta)
		if _, err := c.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// relay watches the slices of a namespace that have a label, whose value is the service. The returned function copies
// each new address of a first endpoint to the first endpoint of the service's slice in the other cluster, one write
// after the other, until the context ends. Each service has one slice.
func relay(ctx context.Context, source *fleet.Client, namespace, label string, to *fleet.Client) (func() error, error) {
	copies := map[string]*discoveryv1.EndpointSlice{}
	from, into := source.DiscoveryV1().EndpointSlices(namespace), to.DiscoveryV1().EndpointSlices(namespace)
	list, err := into.List(ctx, metav1.ListOptions{LabelSelector: mcsv1beta1.LabelServiceName})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		slice := &list.Items[i]
		slice.ResourceVersion = "" // update it in any version
		copies[slice.Labels[mcsv1beta1.LabelServiceName]] = slice
	}
	now, err := from.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	changes, err := from.Watch(ctx, metav1.ListOptions{LabelSelector: label, ResourceVersion: now.ResourceVersion})
	if err != nil {
		return nil, err
	}
	return func() error {
		defer changes.Stop()
		for change := range changes.ResultChan() {
			slice, ok := change.Object.(*discoveryv1.EndpointSlice)
			switch {
			case ctx.Err() != nil:
				return nil
			case !ok:
				return fmt.Errorf("the watch of EndpointSlices in %s ended: %v", namespace, change.Object)
			}
			written := copies[slice.Labels[label]]
			if written == nil {
				continue // a slice that the controllers wrote
			}
			for i := range written.Endpoints {
				if *written.Endpoints[i].Hostname == *slice.Endpoints[0].Hostname {
					written.Endpoints[i].Addresses = slice.Endpoints[0].Addresses
				}
			}
			if _, err := into.Update(ctx, written, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
				return err
			}
		}
		if ctx.Err() == nil {
			return errors.New("the watch of EndpointSlices ended")
		}
		return nil
	}, nil
}
