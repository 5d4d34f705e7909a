// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcs "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned"
	mcsclient "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned/typed/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/answers"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// Objects reads and writes one namespace of a cluster, and sees what its clients see. Its methods end the test if a
// request to the API server fails.
type Objects struct {
	Name string // of the cluster
	// Kube, Dynamic and MCS have all rights.
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	MCS     mcs.Interface
	// DNS is the DNS of the cluster, nil if none runs.
	DNS *answers.DNS

	set       *Set
	nodes     []string // created by the scenario
	described bool     // whether ClusterProperties were created
	// The clients below are clients of the namespace.
	services corev1client.ServiceInterface
	slices   discoveryv1client.EndpointSliceInterface
	exports  mcsclient.ServiceExportInterface
	imports  mcsclient.ServiceImportInterface
}

// NewObjects returns Objects for a cluster that does not belong to a bed.
func NewObjects(t *testing.T, name, namespace string, config *rest.Config) *Objects {
	return (&Set{T: t, namespace: namespace}).objects(name, config)
}

func (s *Set) objects(name string, config *rest.Config) *Objects {
	o := &Objects{Name: name, set: s}
	var err error
	o.Kube, err = kubernetes.NewForConfig(config)
	s.must(err)
	o.Dynamic, err = dynamic.NewForConfig(config)
	s.must(err)
	o.MCS, err = mcs.NewForConfig(config)
	s.must(err)
	o.services, o.slices = o.Kube.CoreV1().Services(s.namespace), o.Kube.DiscoveryV1().EndpointSlices(s.namespace)
	o.exports = o.MCS.MulticlusterV1beta1().ServiceExports(s.namespace)
	o.imports = o.MCS.MulticlusterV1beta1().ServiceImports(s.namespace)
	return o
}

func (s *Set) key(service string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: service}
}

// Patch changes an object of the namespace with a merge patch.
func (o *Objects) Patch(resource schema.GroupVersionResource, name, patch string, subresources ...string) {
	_, err := o.Dynamic.Resource(resource).Namespace(o.set.namespace).Patch(o.set.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{}, subresources...)
	o.set.must(err)
}

// CreateNamespace creates the namespace of the services.
func (c *Cluster) CreateNamespace() {
	c.Put("{apiVersion: v1, kind: Namespace, metadata: {name: " + c.set.namespace + "}}")
	c.namespaces = append(c.namespaces, c.set.namespace)
}

// DeleteNamespace deletes the namespace of the services, and waits until it is gone.
func (c *Cluster) DeleteNamespace() {
	namespaces := c.Kube.CoreV1().Namespaces()
	c.set.must(namespaces.Delete(c.set.Context(), c.set.namespace, metav1.DeleteOptions{}))
	c.set.Eventually("namespace gone", func() error {
		if _, err := namespaces.Get(c.set.Context(), c.set.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there, or: %w", err)
		}
		return nil
	})
}

// Export creates or changes Services and their exports: name:address,address has a cluster IP, and name!address,address
// is headless.
func (o *Objects) Export(services ...string) {
	o.Serve(services...)
	for _, each := range services {
		o.PutExport(serviceIn(each), "{}")
	}
}

// Serve is like Export, but creates no ServiceExports.
func (o *Objects) Serve(services ...string) {
	for _, each := range services {
		name := serviceIn(each)
		ip := ""
		if strings.Contains(each, "!") {
			ip = "clusterIP: None, "
		}
		o.PutService(name, "{"+ip+"ipFamilyPolicy: SingleStack, ports: [{name: http, port: 80, targetPort: 8080}]}")
		if addresses := each[len(name)+1:]; addresses != "" {
			o.SetEndpoints(name, strings.Split(addresses, ",")...)
		}
	}
}

func serviceIn(service string) string { return service[:strings.IndexAny(service, ":!")] }

// PutService creates or changes a Service. The spec is YAML on one line.
func (o *Objects) PutService(name, spec string) {
	o.Put("{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: " + spec + "}")
}

// PutExport creates or changes a ServiceExport.
func (o *Objects) PutExport(name, spec string) {
	o.Put("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: " + name + "}, spec: " + spec + "}")
}

// AnnotateExport creates or changes a ServiceExport with an annotation. The value is YAML: null removes the annotation.
func (o *Objects) AnnotateExport(name, key, value string) {
	o.Put(fmt.Sprintf("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: %s, annotations: {%s: %s}}}", name, key, value))
}

// SetEndpoints sets the endpoints of a Service, as the EndpointSlice controller does. An endpoint is ready, or
// terminating if ~ follows; @ precedes its node.
func (o *Objects) SetEndpoints(service string, endpoints ...string) {
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
	o.Put(fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-%[2]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: %[3]s
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [%[4]s]
`, service, strings.ToLower(kind), kind, strings.Join(texts, ", ")))
}

// DeleteService deletes a Service and its endpoints.
func (o *Objects) DeleteService(name string) {
	o.set.must(o.services.Delete(o.set.Context(), name, metav1.DeleteOptions{}))
	o.set.must(ignoreNotFound(o.slices.Delete(o.set.Context(), name+"-ipv4", metav1.DeleteOptions{})))
}

// Withdraw deletes ServiceExports.
func (o *Objects) Withdraw(services ...string) {
	for _, each := range services {
		o.set.must(o.exports.Delete(o.set.Context(), each, metav1.DeleteOptions{}))
	}
}

// DeleteImport deletes a ServiceImport.
func (o *Objects) DeleteImport(service string, options metav1.DeleteOptions) {
	o.set.must(ignoreNotFound(o.imports.Delete(o.set.Context(), service, options)))
}

// Import returns a ServiceImport that must exist.
func (o *Objects) Import(service string) *v1beta1.ServiceImport {
	imported, err := o.importOf(service)
	o.set.must(err)
	return imported
}

func (o *Objects) importOf(service string) (*v1beta1.ServiceImport, error) {
	return o.imports.Get(o.set.Context(), service, metav1.GetOptions{})
}

func (o *Objects) exportOf(service string) (*v1beta1.ServiceExport, error) {
	return o.exports.Get(o.set.Context(), service, metav1.GetOptions{})
}

func (o *Objects) derivedOf(service string) (*corev1.Service, error) {
	return o.services.Get(o.set.Context(), o.derived(service), metav1.GetOptions{})
}

// watchImports watches imports from the current version of a service's import, until the scenario ends.
func (c *Cluster) watchImports(service string) watch.Interface {
	watched, err := c.imports.Watch(c.set.Context(), metav1.ListOptions{ResourceVersion: c.Import(service).ResourceVersion})
	c.set.must(err)
	c.set.Cleanup(watched.Stop)
	return watched
}

// service returns a Service that must exist.
func (o *Objects) service(name string) *corev1.Service {
	service, err := o.services.Get(o.set.Context(), name, metav1.GetOptions{})
	o.set.must(err)
	return service
}

// clusterScoped are the kinds without a namespace.
var clusterScoped = map[string]bool{
	"Node": true, "CustomResourceDefinition": true, "ClusterProperty": true, "Namespace": true,
}

// Put creates the objects of a YAML stream, or changes the fields of existing ones to its values.
func (o *Objects) Put(text string) {
	o.set.must(o.put(o.set.Context(), text))
}

func (o *Objects) put(ctx context.Context, text string) error {
	objects, err := clusterset.Objects([]byte(text))
	if err != nil {
		return err
	}
	for _, object := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		var client dynamic.ResourceInterface = o.Dynamic.Resource(resource)
		if !clusterScoped[object.GetKind()] {
			client = o.Dynamic.Resource(resource).Namespace(cmp.Or(object.GetNamespace(), o.set.namespace))
		}
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			var patch []byte
			if patch, err = json.Marshal(object); err == nil {
				_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", o.Name, object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// mcsResource returns a resource of the Multi-Cluster Services API.
func mcsResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: v1beta1.GroupName, Version: "v1beta1", Resource: name}
}
