// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

var serviceExports = schema.GroupVersionResource{
	Group: v1beta1.GroupName, Version: "v1beta1", Resource: "serviceexports",
}

// must ends the scenario if a change of a cluster fails: its administrator has
// all rights, and its API server is not asked over the network.
func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", c.Name, err)
	}
}

// Serve creates a Service with one port, http, and sets its ready endpoints.
func (c *Cluster) Serve(service string, headless bool, addresses ...string) {
	c.t.Helper()
	object := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	if headless {
		object.Spec.ClusterIP = corev1.ClusterIPNone
	}
	_, err := c.Kube.CoreV1().Services(Namespace).Create(context.Background(), object, metav1.CreateOptions{})
	c.must(err)
	c.SetEndpoints(service, addresses...)
}

// SetEndpoints sets the ready endpoints of a Service, as the EndpointSlice controller does.
func (c *Cluster) SetEndpoints(service string, addresses ...string) {
	c.t.Helper()
	client := c.Kube.DiscoveryV1().EndpointSlices(Namespace)
	ready, name, port, protocol := true, "http", int32(8080), corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: service + "-1", Labels: map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for _, each := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{each}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
		})
	}
	_, err := client.Update(context.Background(), slice, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(context.Background(), slice, metav1.CreateOptions{})
	}
	c.must(err)
}

// Export creates the ServiceExport of a service.
func (c *Cluster) Export(service string) { c.ExportWith(service, nil, nil) }

// ExportWith creates or replaces the ServiceExport of a service, with annotations and others that it exports.
func (c *Cluster) ExportWith(service string, annotations, exported map[string]string) {
	c.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.ServiceExport{
		TypeMeta:   metav1.TypeMeta{APIVersion: serviceExports.GroupVersion().String(), Kind: v1beta1.ServiceExportKindName},
		ObjectMeta: metav1.ObjectMeta{Name: service, Annotations: annotations},
		Spec:       v1beta1.ServiceExportSpec{ExportedAnnotations: exported},
	})
	c.must(err)
	object, client := &unstructured.Unstructured{Object: content}, c.Dynamic.Resource(serviceExports).Namespace(Namespace)
	if before, err := client.Get(context.Background(), service, metav1.GetOptions{}); err == nil {
		object.SetResourceVersion(before.GetResourceVersion())
		_, err = client.Update(context.Background(), object, metav1.UpdateOptions{})
		c.must(err)
		return
	}
	_, err = client.Create(context.Background(), object, metav1.CreateOptions{})
	c.must(err)
}

// Withdraw deletes the ServiceExport of a service.
func (c *Cluster) Withdraw(service string) {
	c.t.Helper()
	c.must(
		c.Dynamic.Resource(serviceExports).Namespace(Namespace).Delete(context.Background(), service,
			metav1.DeleteOptions{}))
}
