// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// karmadaImport is what Karmada has in an importing cluster for a ServiceImport that a person wrote and propagated: see
// ../interop/karmada, which has the same for another namespace.
const karmadaImport = `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: web, namespace: %[1]s}
spec: {type: ClusterSetIP, ports: [{name: http, port: 81, protocol: TCP}]}
---
apiVersion: v1
kind: Service
metadata: {name: derived-web, namespace: %[1]s}
spec: {ports: [{name: http, port: 81, protocol: TCP}]}
`

// ingressOfKarmada: the same site, where Karmada and not our controller imports the service. No cluster has a
// ServiceExport, so that our controllers, which run, have nothing to do. Karmada's controllers do not: the test writes
// the objects that they would write into north.
func ingressOfKarmada(t *testing.T, b *bed) {
	s := jack(b.namespace(t))
	var east *pod
	for _, c := range []*cluster{b.east, b.west} {
		backends := c.pods(t, s, 1, "http:8080")
		c.serve(t, s)
		if c == b.east {
			east = backends[0]
		}
	}
	must(t, clusterset.Apply(t.Context(), b.north.Cluster, fmt.Appendf(nil, karmadaImport, s.namespace)))

	// The option is the operator's choice, and the bed's own CoreDNS goes without.
	server := b.north.runDNS(t, podSpec{namespace: s.namespace, name: "coredns"}, "fallback services")
	client := b.north.client(t, s.namespace, 0)
	proxy := b.north.pod(t, podSpec{namespace: s.namespace, name: "nginx"})
	client.resolvConf = b.north.writeFile(t, "resolv.conf-karmada", resolvConf(s.namespace, server.addresses[0].String()))
	proxy.resolvConf = client.resolvConf
	eventually(t, "the name to lead to a pod", func(ctx context.Context) error {
		if err := b.north.importAsKarmada(ctx, s, b.east, b.west); err != nil {
			return err
		}
		_, err := client.command(ctx, "curl", "--silent", "--show-error", "--fail", "--max-time", "5", "http://"+s.at(81)+"/jack")
		return err
	})

	_, configuration := documented(t)
	site := startSite(t, client, proxy, strings.ReplaceAll(configuration, "web.jack.", "web."+s.namespace+"."))
	answeredBy := func(clusters ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := b.north.importAsKarmada(ctx, s, b.east, b.west); err != nil {
				return err
			}
			return site.answeredBy(clusters...)(ctx)
		}
	}
	eventually(t, "both clusters to answer", answeredBy("east", "west"))
	b.figures.add("ingress in north, with Karmada's objects", site.ask(t, 50, "east", "west"), "curl → nginx → IP of `derived-web`")
	began := east.setReady(t, false)
	eventually(t, "west to answer alone", answeredBy("west"))
	took := time.Since(began)
	b.figures.add("ingress in north, with Karmada's objects, east lost its pods", site.ask(t, 50, "west"), fmt.Sprintf("after at most %s", seconds(took)))
	b.north.hasNothingOfOurs(t, s)
}

// importAsKarmada brings the endpoints of a Service in other clusters into this one, as Karmada's
// endpointslice-controller does.
func (c *cluster) importAsKarmada(ctx context.Context, s service, from ...*cluster) error {
	for _, member := range from {
		list, err := member.DiscoveryV1().EndpointSlices(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.name})
		if err != nil {
			return err
		}
		for i := range list.Items {
			slice := &list.Items[i]
			name := "imported-" + member.Name() + "-" + slice.Name
			imported, err := json.Marshal(discoveryv1.EndpointSlice{
				TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
				ObjectMeta: metav1.ObjectMeta{
					Namespace: s.namespace, Name: name,
					Labels: map[string]string{
						discoveryv1.LabelServiceName: "derived-" + s.name,
						discoveryv1.LabelManagedBy:   "endpointslice-controller.karmada.io",
					},
				},
				AddressType: slice.AddressType, Endpoints: slice.Endpoints, Ports: slice.Ports,
			})
			if err != nil {
				return err
			}
			options := metav1.PatchOptions{FieldManager: "karmada", Force: ptr.To(true)}
			if _, err := c.DiscoveryV1().EndpointSlices(s.namespace).Patch(ctx, name, types.ApplyPatchType, imported, options); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasNothingOfOurs checks that our controller has neither written nor changed anything for the service.
func (c *cluster) hasNothingOfOurs(t *testing.T, s service) {
	t.Helper()
	imported, err := c.mcs.MulticlusterV1beta1().ServiceImports(s.namespace).Get(t.Context(), s.name, metav1.GetOptions{})
	must(t, err)
	if len(imported.Spec.IPs) > 0 || len(imported.Annotations) > 0 || len(imported.Labels) > 0 || len(imported.Status.Conditions) > 0 {
		t.Errorf("the import of Karmada became %v", imported)
	}
	derived, err := c.CoreV1().Services(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: export.LabelManagedBy + "=" + export.Manager})
	must(t, err)
	endpoints, err := c.DiscoveryV1().EndpointSlices(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: export.LabelSliceManagedBy + "=" + export.Manager})
	must(t, err)
	if len(derived.Items)+len(endpoints.Items) > 0 {
		t.Errorf("our controller made %v and %v", derived.Items, endpoints.Items)
	}
}
