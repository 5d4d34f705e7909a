// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
)

// atOnce is how many services are written at a time: of 2, 4, 8, 16 and 32 the fastest on two cores.
const atOnce = 8

// floor begins the names of the namespaces that this program writes to. They exist.
const floor = "floor-"

// service is what the controller made of one service.
type service struct {
	imported *v1beta1.ServiceImport
	derived  *corev1.Service // nil if headless
	slices   []discoveryv1.EndpointSlice
}

func protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

// fresh is the metadata of a copy of an object in a namespace of this program.
func fresh(from metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: floor + from.Namespace, Name: from.Name, Labels: from.Labels, Annotations: from.Annotations,
	}
}

// imports writes what the controller wrote for each import, once more in other namespaces.
func (p *plain) imports(ctx context.Context, result *figure.Floor) error {
	all, err := p.read(ctx)
	if err != nil {
		return err
	}
	return during(result, func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for _, each := range all {
			group.Go(func() error { return p.write(ctx, each) })
		}
		return group.Wait()
	})
}

// read reads what the controller wrote, by service.
func (p *plain) read(ctx context.Context) (map[string]*service, error) {
	all := map[string]*service{}
	imports, err := p.mcs.MulticlusterV1beta1().ServiceImports("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	derived := map[string]*service{}
	for i := range imports.Items {
		each := &service{imported: &imports.Items[i]}
		all[each.imported.Namespace+"/"+each.imported.Name] = each
		derived[each.imported.Namespace+"/"+each.imported.Annotations[export.AnnotationDerivedService]] = each
	}
	services, err := p.kube.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range services.Items {
		if each := derived[services.Items[i].Namespace+"/"+services.Items[i].Name]; each != nil {
			each.derived = &services.Items[i]
		}
	}
	list, err := p.kube.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelServiceName})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		slice := &list.Items[i]
		if each := all[slice.Namespace+"/"+slice.Labels[v1beta1.LabelServiceName]]; each != nil {
			each.slices = append(each.slices, *slice)
		}
	}
	return all, nil
}

// write writes a service: its derived Service, from which it has its IPs, the import, its status and the slices.
func (p *plain) write(ctx context.Context, s *service) error {
	imported := &v1beta1.ServiceImport{ObjectMeta: fresh(s.imported.ObjectMeta), Spec: s.imported.Spec}
	if s.derived != nil {
		spec := s.derived.Spec.DeepCopy()
		spec.ClusterIP, spec.ClusterIPs = "", nil
		made, err := p.kube.CoreV1().Services(imported.Namespace).Create(ctx,
			&corev1.Service{ObjectMeta: fresh(s.derived.ObjectMeta), Spec: *spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		imported.Spec.IPs = made.Spec.ClusterIPs
	}
	imports := p.mcs.MulticlusterV1beta1().ServiceImports(imported.Namespace)
	made, err := imports.Create(ctx, imported, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status = s.imported.Status
	if _, err := imports.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for i := range s.slices {
		slice := s.slices[i].DeepCopy()
		slice.ObjectMeta = fresh(slice.ObjectMeta)
		if _, err := p.kube.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
