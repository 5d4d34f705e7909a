// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Exports are headless Services without a selector and their slices, in one namespace.
type Exports struct {
	Set
	Services []*corev1.Service
}

// Headless adds a Service called db-<i> with that many endpoints, with hostnames, in slices of PerSlice.
func (e *Exports) Headless(endpoints int) {
	name := fmt.Sprintf("db-%d", len(e.Services))
	e.Services = append(e.Services, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.Namespace},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Ports:     []corev1.ServicePort{{Name: "sql", Port: 5432, Protocol: protocolTCP}},
		},
	})
	for first := 0; first < endpoints; first += PerSlice {
		e.addSlice(name, Clusters[0], first, min(first+PerSlice, endpoints))
		slice := e.Slices[len(e.Slices)-1]
		slice.Labels = map[string]string{
			discoveryv1.LabelServiceName: name,
			discoveryv1.LabelManagedBy:   "bench.clusterset-dns.github.io",
		}
	}
}

// CreateServices writes Services and slices from the given numbers on. Nothing is exported by it.
func (w *Writer) CreateServices(ctx context.Context, exports *Exports, services, slices int) error {
	if err := w.Namespace(ctx, exports.Namespace); err != nil {
		return err
	}
	err := each(ctx, exports.Services[services:], func(ctx context.Context, i int) error {
		_, err := w.kube.CoreV1().Services(exports.Namespace).Create(ctx, exports.Services[services+i],
			metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create Services in %s: %w", exports.Namespace, err)
	}
	return w.Create(ctx, &exports.Set, len(exports.Imports), slices)
}

// Export writes a ServiceExport for each of the Services.
func (w *Writer) Export(ctx context.Context, services []*corev1.Service) error {
	err := each(ctx, services, func(ctx context.Context, i int) error {
		object := &mcsv1beta1.ServiceExport{
			ObjectMeta: metav1.ObjectMeta{Name: services[i].Name, Namespace: services[i].Namespace},
		}
		_, err := w.mcs.MulticlusterV1beta1().ServiceExports(object.Namespace).Create(ctx, object,
			metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create ServiceExports: %w", err)
	}
	return nil
}

// AwaitImports returns when the namespace has exactly that many ServiceImports.
func (w *Writer) AwaitImports(ctx context.Context, namespace string, count int) error {
	imports := w.mcs.MulticlusterV1beta1().ServiceImports(namespace)
	list, err := imports.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ServiceImports in %s: %w", namespace, err)
	}
	have := len(list.Items)
	if have == count {
		return nil
	}
	events, err := imports.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return fmt.Errorf("watch ServiceImports in %s: %w", namespace, err)
	}
	defer events.Stop()
	for have != count {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d ServiceImports in %s, there are %d: %w", count, namespace, have, ctx.Err())
		case event, ok := <-events.ResultChan():
			switch {
			case !ok || event.Type == watch.Error:
				return fmt.Errorf("the watch of ServiceImports in %s ended: %v", namespace, event.Object)
			case event.Type == watch.Added:
				have++
			case event.Type == watch.Deleted:
				have--
			}
		}
	}
	return nil
}

// CountSlices is how many slices there are of an imported service.
func (w *Writer) CountSlices(ctx context.Context, service types.NamespacedName) (int, error) {
	list, err := w.kube.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: mcsv1beta1.LabelServiceName + "=" + service.Name,
	})
	if err != nil {
		return 0, fmt.Errorf("list slices of %s: %w", service, err)
	}
	return len(list.Items), nil
}
