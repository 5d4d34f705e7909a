// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// theirs creates a Service and an import with its IP, as another implementation writes them.
func (c *Cluster) theirs(service, derived string, annotations ...string) *corev1.Service {
	c.Put("{apiVersion: v1, kind: Service, metadata: {name: " + derived + "}, spec: {ports: [{name: http, port: 80}]}}")
	made := c.service(derived)
	c.Put(`{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceImport, metadata: {name: ` + service +
		`}, spec: {type: ClusterSetIP, ips: ["` + made.Spec.ClusterIP +
		`"], ports: [{name: http, port: 80, protocol: TCP}]}}`)
	c.annotateImport(service, annotations...)
	return made
}

// annotateImport adds annotations to an import: pairs of key and value.
func (c *Cluster) annotateImport(service string, annotations ...string) {
	for i := 0; i < len(annotations); i += 2 {
		c.Patch(mcsResource("serviceimports"), service, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotations[i], annotations[i+1]))
	}
}

// adoption: an import of another implementation is left alone until an administrator annotates it for adoption. It then
// keeps its IP.
func adoption(s *Set, east, west *Cluster) {
	derived := east.derived("same")
	before := east.theirs("same", derived, export.AnnotationDerivedService, derived)
	imported := east.Import("same")
	west.Export("same:10.65.0.10")
	east.ExpectEvent(imported, apply.EventForeignObject)
	east.Export("same:10.64.0.10") // published even though another implementation owns the import
	s.Expect(View{"same": ofBoth}, west)
	if after := east.Import("same"); after.ResourceVersion != imported.ResourceVersion {
		s.Fatalf("the import was changed before anybody asked: %v", after)
	}
	east.annotateImport("same", export.AnnotationAdopt, "true")
	s.Expect(View{"same": ofBoth})
	east.IPs("same", before.Spec.ClusterIPs...)
	after := east.service(derived)
	if after.UID != before.UID || !export.IsManaged(after) {
		s.Errorf("the Service was not adopted but made anew: %v", after.ObjectMeta)
	}

	// The Service behind the import has another name: its IP is free only after the Service is deleted.
	other := east.theirs("other", "antrea-mc-other", export.AnnotationAdopt, "true")
	west.Export("other:10.65.0.11")
	s.Expect(View{"other": "west/10.65.0.11 -> " + other.Spec.ClusterIP + " (ServiceRefused)"}, east) // the API server refuses the IP
	east.DeleteService(other.Name)
	east.IPs("other", other.Spec.ClusterIPs...)
	s.Expect(View{"other": "west/10.65.0.11 -> VIP"})
}
