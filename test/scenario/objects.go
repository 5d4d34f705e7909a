// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func (s *Set) key(service string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: service}
}

// Patch changes an object of the namespace by a merge patch.
func (c *Cluster) Patch(resource schema.GroupVersionResource, name, patch string, subresources ...string) {
	c.set.Helper()
	_, err := c.Dynamic.Resource(resource).Namespace(c.set.namespace).Patch(c.set.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{}, subresources...)
	c.set.must(err)
}

// CreateNamespace creates the namespace of the services.
func (c *Cluster) CreateNamespace() {
	c.set.Helper()
	_, err := c.Kube.CoreV1().Namespaces().Create(c.set.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.set.namespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		c.set.must(err)
	}
	c.namespaces = append(c.namespaces, c.set.namespace)
}

// DeleteNamespace deletes it and waits until it is gone.
func (c *Cluster) DeleteNamespace() {
	c.set.Helper()
	namespaces := c.Kube.CoreV1().Namespaces()
	c.set.must(namespaces.Delete(c.set.Context(), c.set.namespace, metav1.DeleteOptions{}))
	c.set.Eventually("namespace gone", func() error {
		if _, err := namespaces.Get(c.set.Context(), c.set.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there, or: %w", err)
		}
		return nil
	})
}

// Export serves and exports services, each as name:address,address with a
// cluster IP or name!address,address without. What exists is changed.
func (c *Cluster) Export(services ...string) {
	c.set.Helper()
	c.Serve(services...)
	for _, each := range services {
		c.PutExport(nameOf(each), "{}")
	}
}

// Serve is Export without ServiceExports.
func (c *Cluster) Serve(services ...string) {
	c.set.Helper()
	for _, each := range services {
		name := nameOf(each)
		ip := ""
		if strings.Contains(each, "!") {
			ip = "clusterIP: None, "
		}
		c.PutService(name, "{"+ip+"ipFamilyPolicy: SingleStack, ports: [{name: http, port: 80, targetPort: 8080}]}")
		if addresses := each[len(name)+1:]; addresses != "" {
			c.SetEndpoints(name, strings.Split(addresses, ",")...)
		}
	}
}

func nameOf(service string) string { return service[:strings.IndexAny(service, ":!")] }

// PutService creates or changes a Service, whose spec is YAML on one line.
func (c *Cluster) PutService(name, spec string) {
	c.set.Helper()
	c.Put("{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: " + spec + "}")
}

// PutExport creates or changes a ServiceExport.
func (c *Cluster) PutExport(name, spec string) {
	c.set.Helper()
	c.Put("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: " + name + "}, spec: " + spec + "}")
}

// AnnotateExport creates or changes a ServiceExport with an annotation, whose value is YAML: null removes it.
func (c *Cluster) AnnotateExport(name, key, value string) {
	c.set.Helper()
	c.Put(fmt.Sprintf("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: %s, annotations: {%s: %s}}}", name, key, value))
}

// SetEndpoints gives a Service endpoints, as the EndpointSlice controller does: they are ready, or terminate if ~ follows.
func (c *Cluster) SetEndpoints(service string, addresses ...string) {
	c.set.Helper()
	var endpoints []string
	kind := "IPv4"
	for _, each := range addresses {
		address, terminates := strings.CutSuffix(each, "~")
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%q], conditions: {ready: %t, serving: true, terminating: %t}}",
			address, !terminates, terminates))
		if strings.Contains(each, ":") {
			kind = "IPv6"
		}
	}
	c.Put(fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-%[2]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: %[3]s
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [%[4]s]
`, service, strings.ToLower(kind), kind, strings.Join(endpoints, ", ")))
}

// DeleteService deletes a Service and its endpoints.
func (c *Cluster) DeleteService(name string) {
	c.set.Helper()
	c.set.must(c.services.Delete(c.set.Context(), name, metav1.DeleteOptions{}))
	c.set.must(ignoreNotFound(c.slices.Delete(c.set.Context(), name+"-ipv4", metav1.DeleteOptions{})))
}

// Withdraw deletes ServiceExports.
func (c *Cluster) Withdraw(services ...string) {
	c.set.Helper()
	for _, each := range services {
		c.set.must(c.exports.Delete(c.set.Context(), each, metav1.DeleteOptions{}))
	}
}

// DeleteImport deletes a ServiceImport.
func (c *Cluster) DeleteImport(service string, options metav1.DeleteOptions) {
	c.set.Helper()
	c.set.must(ignoreNotFound(c.imports.Delete(c.set.Context(), service, options)))
}

// Import returns a ServiceImport that there is.
func (c *Cluster) Import(service string) *v1beta1.ServiceImport {
	c.set.Helper()
	imported, err := c.importOf(service)
	c.set.must(err)
	return imported
}

func (c *Cluster) importOf(service string) (*v1beta1.ServiceImport, error) {
	return c.imports.Get(c.set.Context(), service, metav1.GetOptions{})
}

func (c *Cluster) exportOf(service string) (*v1beta1.ServiceExport, error) {
	return c.exports.Get(c.set.Context(), service, metav1.GetOptions{})
}

func (c *Cluster) derivedOf(service string) (*corev1.Service, error) {
	return c.services.Get(c.set.Context(), c.derived(service), metav1.GetOptions{})
}

// watchImports returns a watch of imports from a service's as it is now, until the scenario ends.
func (c *Cluster) watchImports(service string) watch.Interface {
	c.set.Helper()
	watched, err := c.imports.Watch(c.set.Context(), metav1.ListOptions{ResourceVersion: c.Import(service).ResourceVersion})
	c.set.must(err)
	c.set.Cleanup(watched.Stop)
	return watched
}

// service returns a Service that there is.
func (c *Cluster) service(name string) *corev1.Service {
	c.set.Helper()
	service, err := c.services.Get(c.set.Context(), name, metav1.GetOptions{})
	c.set.must(err)
	return service
}

// clusterScoped are the kinds that are in no namespace.
var clusterScoped = map[string]bool{
	"Node": true, "CustomResourceDefinition": true, "MutatingAdmissionPolicy": true,
	"MutatingAdmissionPolicyBinding": true, "ClusterProperty": true, "Namespace": true,
}

// Put creates the objects of a YAML stream, or changes those that exist to have what it says.
func (c *Cluster) Put(text string) {
	c.set.Helper()
	c.set.must(c.put(c.set.Context(), text))
}

func (c *Cluster) put(ctx context.Context, text string) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if object.Object == nil {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		var client dynamic.ResourceInterface = c.Dynamic.Resource(resource)
		if !clusterScoped[object.GetKind()] {
			client = c.Dynamic.Resource(resource).Namespace(c.set.namespace)
		}
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			var patch []byte
			if patch, err = json.Marshal(object); err == nil {
				_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", c.Name, object.GetKind(), object.GetName(), err)
		}
	}
}

// mcsResource is a resource of the Multi-Cluster Services API.
func mcsResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: v1beta1.GroupName, Version: "v1beta1", Resource: name}
}
