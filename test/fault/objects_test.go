// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	dto "github.com/prometheus/client_model/go"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// What west and north export. Both have web and db, and west alone has solo and
// lone; web and solo have an IP, db and lone are headless.
var exported = map[string]string{
	"west":  "web:10.65.0.1 solo:10.65.0.2 db!10.65.0.3 lone!10.65.0.4",
	"north": "web:10.66.0.1 db!10.66.0.3",
}

// What is to be seen in east: slices, and what is answered. A tilde marks an
// endpoint that is serving and terminating, rather than ready. IP is the IP of
// the import.
type view struct{ web, solo, db, lone string }

var (
	healthy = view{
		web:  "north/10.66.0.1 west/10.65.0.1 -> IP",
		solo: "west/10.65.0.2 -> IP",
		db:   "north/10.66.0.3 west/10.65.0.3 -> 10.65.0.3 10.66.0.3",
		lone: "west/10.65.0.4 -> 10.65.0.4",
	}
	// westDemoted: there is another for web and db, and none for the rest.
	westDemoted = view{
		web:  "north/10.66.0.1 west/10.65.0.1~ -> IP",
		solo: "west/10.65.0.2 -> IP",
		db:   "north/10.66.0.3 west/10.65.0.3~ -> 10.66.0.3",
		lone: "west/10.65.0.4 -> 10.65.0.4",
	}
	westGone = view{
		web:  "north/10.66.0.1 -> IP",
		solo: "none -> NXDOMAIN",
		db:   "north/10.66.0.3 -> 10.66.0.3",
		lone: "none -> NXDOMAIN",
	}
)

func (b *bed) exportServices() {
	b.Helper()
	for _, c := range b.all() {
		b.apply(c, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+b.namespace+"}}")
		b.Cleanup(func() {
			b.must(ignoreNotFound(c.CoreV1().Namespaces().Delete(context.Background(), b.namespace, metav1.DeleteOptions{})))
		})
		for each := range strings.FieldsSeq(exported[c.Name()]) {
			name, address, _ := strings.Cut(each, ":")
			ip := ""
			if headless, at, ok := strings.Cut(each, "!"); ok {
				name, address, ip = headless, at, "clusterIP: None, "
			}
			b.apply(c, b.namespace, fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {%sports: [{name: http, port: 80, targetPort: 8080}]}}
---
{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: %s}}
`, name, ip, name))
			b.endpoints(c, name, address)
		}
	}
}

// endpoints gives a Service one ready endpoint.
func (b *bed) endpoints(c *cluster, name, address string) {
	b.Helper()
	b.apply(c, b.namespace, fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-manual, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [%[2]q], conditions: {ready: true, serving: true, terminating: false}}]
`, name, address))
}

// apply writes the objects of a YAML stream.
func (b *bed) apply(c *cluster, namespace, text string) {
	b.Helper()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Discovery()))
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			b.Fatal(err)
		}
		if object.Object == nil {
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		b.must(err)
		var client dynamic.ResourceInterface = c.Dynamic().Resource(mapping.Resource)
		if mapping.Scope.Name() == "namespace" {
			if object.GetNamespace() != "" {
				namespace = object.GetNamespace()
			}
			client = c.Dynamic().Resource(mapping.Resource).Namespace(namespace)
		}
		if _, err := client.Apply(b.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			b.Fatalf("%s %s: %v", kind.Kind, object.GetName(), err)
		}
	}
}

// expect waits until east has the objects and gives the answers. No clock
// moves.
func (b *bed) expect(want view) {
	b.Helper()
	for name, text := range map[string]string{"web": want.web, "solo": want.solo, "db": want.db, "lone": want.lone} {
		b.eventually(name+" in east", func(ctx context.Context) error {
			got, err := b.seen(ctx, name)
			if err == nil && got != text {
				err = fmt.Errorf("got  %s\nwant %s", got, text)
			}
			return err
		})
	}
}

// seen is what east has of a service, and what it answers.
func (b *bed) seen(ctx context.Context, name string) (string, error) {
	list, err := b.east.DiscoveryV1().EndpointSlices(b.namespace).List(ctx, metav1.ListOptions{LabelSelector: export.LabelService + "=" + name})
	if err != nil {
		return "", err
	}
	var endpoints []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			endpoints = append(endpoints, slice.Labels[export.LabelSourceCluster]+"/"+endpoint.Addresses[0]+mark(endpoint.Conditions))
		}
	}
	slices.Sort(endpoints)
	answer, err := b.answer(ctx, name)
	if err != nil {
		return "", err
	}
	serviceImport, err := b.east.mcs.MulticlusterV1beta1().ServiceImports(b.namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return strings.Join(append(endpoints, "none"), " ") + " -> " + answer, nil
	case err != nil:
		return "", err
	}
	if len(serviceImport.Spec.IPs) == 1 && serviceImport.Spec.IPs[0] == answer {
		answer = "IP"
	}
	return strings.Join(endpoints, " ") + " -> " + answer, nil
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

// answer is what east answers for a service: addresses, sorted, or the rcode.
func (b *bed) answer(ctx context.Context, name string) (string, error) {
	query := new(dns.Msg).SetQuestion(name+"."+b.namespace+".svc.clusterset.local.", dns.TypeA)
	client := dns.Client{Timeout: 10 * time.Second}
	reply, _, err := client.ExchangeContext(ctx, query, b.dns.Servers()[0].LocalAddr().String())
	if err != nil {
		return "", err
	}
	if reply.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[reply.Rcode], nil
	}
	var addresses []string
	for _, record := range reply.Answer {
		if a, ok := record.(*dns.A); ok {
			addresses = append(addresses, a.A.String())
		}
	}
	slices.Sort(addresses)
	return strings.Join(addresses, " "), nil
}

// metric returns a metric of the cluster's controller, nil where it has none
// with these labels.
func (c *cluster) metric(name string, labels map[string]string) (*dto.Metric, error) {
	families, err := c.options.Registry.Gather()
	if err != nil {
		return nil, err
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if maps.Equal(labelsOf(metric), labels) {
				return metric, nil
			}
		}
	}
	return nil, nil
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
