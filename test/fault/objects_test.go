// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// What the clusters export. West and north have web and db, and west alone has
// solo and lone; web and solo have an IP, db and lone are headless. East
// exports nothing of its own.
var exported = map[string]string{
	"west":  "web:10.65.0.1 solo:10.65.0.2 db!10.65.0.3 lone!10.65.0.4",
	"north": "web:10.66.0.1 db!10.66.0.3",
}

func (b *bed) createNamespace(c *cluster) {
	b.Helper()
	b.apply(c, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+b.namespace+"}}")
}

// exportServices makes or restores what a cluster exports.
func (b *bed) exportServices(c *cluster) {
	b.Helper()
	for each := range strings.FieldsSeq(b.services[c.Name()]) {
		name, address, _ := strings.Cut(each, ":")
		headless := false
		if before, at, ok := strings.Cut(each, "!"); ok {
			name, address, headless = before, at, true
		}
		b.service(c, name, headless)
		b.endpoints(c, name, address)
		b.export(c, name)
	}
}

// service makes a Service without a selector.
func (b *bed) service(c *cluster, name string, headless bool) {
	b.Helper()
	ip := ""
	if headless {
		ip = "clusterIP: None, "
	}
	b.apply(c, b.namespace, "{apiVersion: v1, kind: Service, metadata: {name: "+name+"}, spec: {"+ip+"ports: [{name: http, port: 80, targetPort: 8080}]}}")
}

func (b *bed) export(c *cluster, name string) {
	b.Helper()
	b.apply(c, b.namespace, "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: "+name+"}}")
}

func (b *bed) unexport(c *cluster, name string) {
	b.Helper()
	b.must(c.mcs.MulticlusterV1beta1().ServiceExports(b.namespace).Delete(b.Context(), name, metav1.DeleteOptions{}))
}

// endpoints gives a Service ready endpoints.
func (b *bed) endpoints(c *cluster, name string, addresses ...string) {
	b.Helper()
	b.allowed.give(addresses...)
	b.apply(c, b.namespace, sliceOf(name, addresses...))
}

func sliceOf(name string, addresses ...string) string {
	var endpoints []string
	for _, address := range addresses {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%q], conditions: {ready: true, serving: true, terminating: false}}", address))
	}
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-manual, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [%[2]s]
`, name, strings.Join(endpoints, ", "))
}

// apply writes the objects of a YAML stream.
func (b *bed) apply(c *cluster, namespace, text string) {
	b.Helper()
	b.must(c.apply(b.Context(), namespace, text))
}

func (c *cluster) apply(ctx context.Context, namespace, text string) error {
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
		kind := object.GroupVersionKind()
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		var client dynamic.ResourceInterface = c.Dynamic().Resource(mapping.Resource)
		if mapping.Scope.Name() == "namespace" {
			if object.GetNamespace() != "" {
				namespace = object.GetNamespace()
			}
			client = c.Dynamic().Resource(mapping.Resource).Namespace(namespace)
		}
		if _, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
}

func mark(conditions discoveryv1.EndpointConditions) string {
	ready, serving, terminating := isTrue(conditions.Ready), isTrue(conditions.Serving), isTrue(conditions.Terminating)
	switch {
	case ready && serving && !terminating:
		return ""
	case !ready && serving && terminating:
		return "~"
	}
	return fmt.Sprintf("(ready %v serving %v terminating %v)", ready, serving, terminating)
}

func isTrue(value *bool) bool { return value != nil && *value }

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
