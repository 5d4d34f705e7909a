// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

var serviceExports = schema.GroupVersionResource{
	Group: v1beta1.GroupName, Version: "v1beta1", Resource: "serviceexports",
}

// Must ends the scenario if a change of a cluster fails: its administrator has
// all rights, and its API server is not asked over the network.
func (c *Cluster) Must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", c.Name, err)
	}
}

// Serve creates a Service with one port, http, and sets its ready endpoints.
func (c *Cluster) Serve(service string, headless bool, addresses ...string) {
	c.t.Helper()
	object := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: Namespace},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	if headless {
		object.Spec.ClusterIP = corev1.ClusterIPNone
	}
	c.Put(object)
	c.SetEndpoints(service, addresses...)
}

// SetEndpoints sets the ready endpoints of a Service, as the EndpointSlice controller does.
func (c *Cluster) SetEndpoints(service string, addresses ...string) {
	c.t.Helper()
	c.putSlice(Namespace, service, "http", 8080, addresses)
}

// OfferCanaries sets the canaries of the cluster, as the EndpointSlice controller does.
func (c *Cluster) OfferCanaries(canaries ...string) {
	c.t.Helper()
	c.putSlice(member.DefaultNamespace, canary.Service, canary.Port, 8081, canaries)
}

// putSlice creates or replaces the slice of a Service with one port, whose endpoints are ready, each on a node of its own.
func (c *Cluster) putSlice(namespace, service, port string, number int32, addresses []string) {
	c.t.Helper()
	slice := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Name: service + "-1", Namespace: namespace, Labels: map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number, Protocol: new(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{},
	}
	for _, each := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{each}, Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)}, NodeName: new("node-of-" + each),
		})
	}
	c.Put(slice)
}

// Export creates the ServiceExport of a service.
func (c *Cluster) Export(service string) { c.ExportWith(service, nil, nil) }

// ExportWith creates or replaces the ServiceExport of a service, with annotations and others that it exports.
func (c *Cluster) ExportWith(service string, annotations, exported map[string]string) {
	c.t.Helper()
	c.Put(&v1beta1.ServiceExport{
		TypeMeta:   metav1.TypeMeta{APIVersion: serviceExports.GroupVersion().String(), Kind: v1beta1.ServiceExportKindName},
		ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: Namespace, Annotations: annotations},
		Spec:       v1beta1.ServiceExportSpec{ExportedAnnotations: exported},
	})
}

// Withdraw deletes the ServiceExport of a service.
func (c *Cluster) Withdraw(service string) {
	c.t.Helper()
	c.Must(
		c.Dynamic.Resource(serviceExports).Namespace(Namespace).Delete(context.Background(), service,
			metav1.DeleteOptions{}))
}

// Put creates an object, which names its kind, or replaces the one of its name but for the status.
func (c *Cluster) Put(object metav1.Object) {
	c.t.Helper()
	ctx := context.Background()
	content, client := c.resourceOf(object)
	_, err := client.Create(ctx, content, metav1.CreateOptions{})
	for apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) { // the controller writes conditions of exports
		was, missing := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		c.Must(missing)
		content.SetResourceVersion(was.GetResourceVersion())
		_, err = client.Update(ctx, content, metav1.UpdateOptions{})
	}
	c.Must(err)
}

// Delete deletes an object, which names its kind, if it exists.
func (c *Cluster) Delete(object metav1.Object) {
	c.t.Helper()
	_, client := c.resourceOf(object)
	if err := client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		c.Must(err)
	}
}

// resourceOf is an object without its status, and the client of its kind.
func (c *Cluster) resourceOf(object metav1.Object) (*unstructured.Unstructured, dynamic.ResourceInterface) {
	c.t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	c.Must(err)
	delete(fields, "status")
	content := &unstructured.Unstructured{Object: fields}
	resource, _ := meta.UnsafeGuessKindToResource(content.GroupVersionKind())
	return content, c.Dynamic.Resource(resource).Namespace(object.GetNamespace())
}
