// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// ofKarmada is what Karmada has in an importing cluster for a service of west:
// see ../interop/karmada.
const ofKarmada = `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: %[1]s}
spec: {type: ClusterSetIP, ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: v1
kind: Service
metadata: {name: derived-%[1]s}
spec: {ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: imported-west-%[1]s-a1a1a
  labels:
    kubernetes.io/service-name: derived-%[1]s
    endpointslice.kubernetes.io/managed-by: endpointslice-controller.karmada.io
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [%[2]s], conditions: {ready: true}}]
`

// karmada writes what Karmada has for a service into the cluster, lets west
// export the service, and returns Karmada's Service once the import was seen
// and left alone.
func (c *cluster) karmada(t *testing.T, west *cluster, web types.NamespacedName, address string) *corev1.Service {
	t.Helper()
	c.create(t, web.Namespace, fmt.Sprintf(ofKarmada, web.Name, address))
	theirs, err := c.CoreV1().Services(web.Namespace).Get(t.Context(), "derived-"+web.Name, metav1.GetOptions{})
	must(t, err)
	before, err := c.serviceImport(t.Context(), web)
	must(t, err)
	west.create(t, web.Namespace, service(web.Name, address)+serviceExport(web.Name))
	c.leavesAlone(t, before)
	return theirs
}

// keepsKarmadas checks that Karmada's Service and slice are as they were.
func (c *cluster) keepsKarmadas(t *testing.T, web types.NamespacedName, theirs *corev1.Service) {
	t.Helper()
	service, err := c.CoreV1().Services(web.Namespace).Get(t.Context(), theirs.Name, metav1.GetOptions{})
	must(t, err)
	if service.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("Karmada's Service became %v", service)
	}
	slice, err := c.DiscoveryV1().EndpointSlices(web.Namespace).Get(t.Context(), "imported-west-"+web.Name+"-a1a1a", metav1.GetOptions{})
	must(t, err)
	if slice.Generation != 1 || len(slice.Labels) != 2 {
		t.Errorf("Karmada's slice became %v", slice)
	}
}

// TestKarmadasImportsAreAdopted: the IP is that of Karmada's own Service, and
// not of the import. It stays where it was written into the import before.
func TestKarmadasImportsAreAdopted(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)

	t.Run("without IPs", func(t *testing.T) {
		web := key(demo, "no-ips")
		theirs := east.karmada(t, west, web, "10.65.0.20")
		east.annotate(t, web, adopt)
		expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.20]", east)
		if ips := east.ips(t, web); slices.Equal(ips, theirs.Spec.ClusterIPs) {
			t.Errorf("two Services have the IPs %v", ips)
		}
		// Clients of the old address go on, as long as its Service stays.
		east.keepsKarmadas(t, web, theirs)
		quiet(t, east)
	})
	t.Run("with the IP of its Service", func(t *testing.T) {
		web := key(demo, "with-ip")
		theirs := east.karmada(t, west, web, "10.65.0.21")
		patch := fmt.Appendf(nil, `{"spec":{"ips":[%q]},"metadata":{"annotations":{%q:"true"}}}`, theirs.Spec.ClusterIP, export.AnnotationAdopt)
		_, err := east.mcs.MulticlusterV1beta1().ServiceImports(demo).Patch(t.Context(), web.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
		east.waitsForIPs(t, web, theirs.Spec.ClusterIPs)
		east.keepsKarmadas(t, web, theirs)
		must(t, east.CoreV1().Services(demo).Delete(t.Context(), theirs.Name, metav1.DeleteOptions{}))
		east.hasIPs(t, web, theirs.Spec.ClusterIPs)
		expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.21]", east)
		quiet(t, east)
	})
}
