// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

func (s *Set) key(service string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: service}
}

// Patch changes an object of the namespace with a merge patch.
func (c *Cluster) Patch(resource schema.GroupVersionResource, name, patch string, subresources ...string) {
	_, err := c.Dynamic.Resource(resource).Namespace(c.set.namespace).Patch(c.set.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{}, subresources...)
	c.set.must(err)
}

// CreateNamespace creates the namespace of the services.
func (c *Cluster) CreateNamespace() {
	c.Put("{apiVersion: v1, kind: Namespace, metadata: {name: " + c.set.namespace + "}}")
	c.namespaces = append(c.namespaces, c.set.namespace)
}

// Export creates or changes Services and their exports: name:address,address has a cluster IP, and name!address,address
// is headless.
func (c *Cluster) Export(services ...string) {
	c.Serve(services...)
	for _, each := range services {
		c.PutExport(serviceIn(each), "{}")
	}
}

// Serve is like Export, but creates no ServiceExports.
func (c *Cluster) Serve(services ...string) {
	for _, each := range services {
		name := serviceIn(each)
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

func serviceIn(service string) string { return service[:strings.IndexAny(service, ":!")] }

// PutService creates or changes a Service. The spec is YAML on one line.
func (c *Cluster) PutService(name, spec string) {
	c.Put("{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: " + spec + "}")
}

// PutExport creates or changes a ServiceExport.
func (c *Cluster) PutExport(name, spec string) {
	c.Put("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: " + name + "}, spec: " + spec + "}")
}

// AnnotateExport creates or changes a ServiceExport with an annotation. The value is YAML: null removes the annotation.
func (c *Cluster) AnnotateExport(name, key, value string) {
	c.Put(fmt.Sprintf("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: %s, annotations: {%s: %s}}}", name, key, value))
}

// SetEndpoints sets the endpoints of a Service, as the EndpointSlice controller does. An endpoint is ready, or
// terminating if ~ follows; @ precedes its node.
func (c *Cluster) SetEndpoints(service string, endpoints ...string) {
	var texts []string
	kind := "IPv4"
	for _, each := range endpoints {
		address, terminates := strings.CutSuffix(each, "~")
		address, node, _ := strings.Cut(address, "@")
		texts = append(texts, fmt.Sprintf("{addresses: [%q], nodeName: %s, conditions: {ready: %t, serving: true, terminating: %t}}",
			address, cmp.Or(node, "null"), !terminates, terminates))
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
`, service, strings.ToLower(kind), kind, strings.Join(texts, ", ")))
}

// DeleteService deletes a Service and its endpoints.
func (c *Cluster) DeleteService(name string) {
	c.set.must(c.services.Delete(c.set.Context(), name, metav1.DeleteOptions{}))
	c.set.must(ignoreNotFound(c.slices.Delete(c.set.Context(), name+"-ipv4", metav1.DeleteOptions{})))
}

// Withdraw deletes ServiceExports.
func (c *Cluster) Withdraw(services ...string) {
	for _, each := range services {
		c.set.must(c.exports.Delete(c.set.Context(), each, metav1.DeleteOptions{}))
	}
}

// DeleteImport deletes a ServiceImport.
func (c *Cluster) DeleteImport(service string, options metav1.DeleteOptions) {
	c.set.must(ignoreNotFound(c.imports.Delete(c.set.Context(), service, options)))
}

// Import returns a ServiceImport that must exist.
func (c *Cluster) Import(service string) *v1beta1.ServiceImport {
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

// watchImports watches imports from the current version of a service's import, until the scenario ends.
func (c *Cluster) watchImports(service string) watch.Interface {
	watched, err := c.imports.Watch(c.set.Context(), metav1.ListOptions{ResourceVersion: c.Import(service).ResourceVersion})
	c.set.must(err)
	c.set.Cleanup(watched.Stop)
	return watched
}

// service returns a Service that must exist.
func (c *Cluster) service(name string) *corev1.Service {
	service, err := c.services.Get(c.set.Context(), name, metav1.GetOptions{})
	c.set.must(err)
	return service
}

// clusterScoped are the kinds without a namespace.
var clusterScoped = map[string]bool{
	"Node": true, "CustomResourceDefinition": true, "ClusterProperty": true, "Namespace": true,
}

// Put creates the objects of a YAML stream, or changes the fields of existing ones to its values.
func (c *Cluster) Put(text string) {
	c.set.must(c.put(c.set.Context(), text))
}

func (c *Cluster) put(ctx context.Context, text string) error {
	objects, err := clusterset.Objects([]byte(text))
	if err != nil {
		return err
	}
	for _, object := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		var client dynamic.ResourceInterface = c.Dynamic.Resource(resource)
		if !clusterScoped[object.GetKind()] {
			client = c.Dynamic.Resource(resource).Namespace(cmp.Or(object.GetNamespace(), c.set.namespace))
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
	return nil
}

// mcsResource returns a resource of the Multi-Cluster Services API.
func mcsResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: v1beta1.GroupName, Version: "v1beta1", Resource: name}
}
