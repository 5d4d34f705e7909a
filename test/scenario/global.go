// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// globalOfCilium is a global service of Cilium in one of two clusters: the Service of the same name, and the slice that
// Cilium mirrors from the other cluster, if it is asked to.
const globalOfCilium = `
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations: {service.cilium.io/global: "true", service.cilium.io/global-sync-endpoint-slices: "true"}
spec: {ipFamilyPolicy: SingleStack, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-%[1]s-a1a1a
  labels:
    kubernetes.io/service-name: web
    multicluster.kubernetes.io/source-cluster: %[1]s
    endpointslice.kubernetes.io/managed-by: endpointslice-mesh-controller.cilium.io
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [%[2]s], conditions: {ready: true}}]
`

// globalServices: they are exported one cluster after the other, while Cilium still shares them. Each cluster exports its
// own endpoints, and what Cilium has stays as it is.
func globalServices(s *Set, east, west *Cluster) {
	east.Put(fmt.Sprintf(globalOfCilium, "west", "10.65.0.10"))
	west.Put(fmt.Sprintf(globalOfCilium, "east", "10.64.0.10"))
	east.SetEndpoints("web", "10.64.0.10")
	west.SetEndpoints("web", "10.65.0.10")
	theirs := func() (versions string) {
		slice, err := east.slices.Get(s.Context(), "web-west-a1a1a", metav1.GetOptions{})
		s.must(err)
		return east.service("web").ResourceVersion + " " + slice.ResourceVersion
	}
	before := theirs()
	s.Quiet()

	east.PutExport("web", "{}")
	s.Expect(web(ofEast))
	west.PutExport("web", "{}")
	s.Expect(web(ofBoth))
	if after := theirs(); after != before {
		s.Errorf("the Service and the slice of Cilium had the versions %s, and have %s", before, after)
	}
}
