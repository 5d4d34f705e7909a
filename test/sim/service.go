// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Must ends the scenario if a change of a cluster fails: its administrator has
// all rights, and its API server is not asked over the network.
func (c *Cluster) Must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", c.Name, err)
	}
}

// OfferCanaries sets the canaries of the cluster, as the EndpointSlice controller does.
func (c *Cluster) OfferCanaries(canaries ...string) {
	c.t.Helper()
	var endpoints []string
	for _, each := range canaries {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%q], conditions: {ready: true, serving: true}}", each))
	}
	c.Put(fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
  metadata: {namespace: %s, name: canaries, labels: {%s: %s}}, ports: [{name: %s, port: 8081, protocol: TCP}], endpoints: [%s]}`,
		member.DefaultNamespace, export.LabelKubernetesService, canary.Service, canary.Port, strings.Join(endpoints, ", ")))
}

// Write creates an object, which names its kind, or replaces the one of its name but for the status.
func (c *Cluster) Write(object metav1.Object) {
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
