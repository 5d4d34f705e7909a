// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// sameIP: the derived Service is deleted, while the controller runs and while it does not. It is recreated with its IP,
// unless another Service took the IP: then the name resolves to a new IP.
func sameIP(s *Set, east, west *Cluster) {
	west.Export("web:10.65.0.10")
	s.Expect(web(ofWest))
	ips := east.IPs("web")
	remove := func() { east.DeleteService(east.derived("web")) }
	remove()
	east.IPs("web", ips...)
	east.Stop()
	remove()
	east.Start()
	east.IPs("web", ips...)
	east.Stop()
	remove()
	east.PutService("thief", "{clusterIP: "+ips[0]+", ports: [{port: 1}]}")
	east.Start()
	s.Expect(web(ofWest), east)
	if now := east.IPs("web"); slices.Contains(now, ips[0]) {
		s.Errorf("the import has %v, the IP of the thief", now)
	}
	east.DeleteService("thief")
	s.Expect(web(ofWest))
}

// replaceImport deletes an import, and waits for a new one.
func (c *Cluster) replaceImport(service string, remove func()) {
	before := c.Import(service).UID
	remove()
	c.set.Eventually("another import", func() error {
		after, err := c.importOf(service)
		if err == nil && after.UID == before {
			err = fmt.Errorf("it is still the old one")
		}
		return err
	})
}

// collected deletes an import, with everything that Kubernetes garbage-collects: it comes back with all endpoints.
func collected(s *Set, east, west *Cluster) {
	west.Export("web:10.65.0.10")
	east.Export("web:10.64.0.10")
	s.Expect(web(ofBoth))
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationForeground, metav1.DeletePropagationBackground,
	} {
		east.replaceImport("web", func() {
			east.DeleteImport("web", metav1.DeleteOptions{PropagationPolicy: &policy})
			if policy == metav1.DeletePropagationBackground { // as if the garbage collector is faster than the controller
				s.must(east.slices.DeleteCollection(s.Context(), metav1.DeleteOptions{},
					metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=west"}))
			}
		})
		s.Expect(web(ofBoth))
	}
	// Endpoints that are garbage-collected after a withdrawal do not come back.
	west.Withdraw("web")
	s.Expect(web(ofEast))
	east.DeleteImport("web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	east.Withdraw("web")
	s.Quiet()
	s.Expect(web(gone))
}

// othersObjects: objects of another writer with names that the controller needs are left alone, reported in an Event,
// and the names are used once the objects are deleted. The scenario of adoption has an import of another writer.
func othersObjects(s *Set, east, west *Cluster) {
	east.PutService(east.derived("api"), "{ports: [{port: 1}]}")
	other := east.service(east.derived("api"))
	west.Export("api:10.65.0.11")
	s.Eventually("an import without a Service", func() error {
		_, err := east.importOf("api")
		return err
	})
	s.Eventually("the reason of Ready", func() error {
		if ready := meta.FindStatusCondition(east.Import("api").Status.Conditions, "Ready"); ready == nil || ready.Reason != merge.ReasonForeignService {
			return fmt.Errorf("%+v", ready)
		}
		return nil
	})
	s.Becomes("IPs of the import", "[]", func() (string, error) { return fmt.Sprint(east.Import("api").Spec.IPs), nil })
	if after := east.service(other.Name); after.ResourceVersion != other.ResourceVersion {
		s.Errorf("the other's Service was changed: %v", after)
	}
	east.DeleteService(other.Name)
	s.Expect(View{"api": "west/10.65.0.11 -> VIP"})

	// A slice of the controller gets another manager. Only Kubernetes may delete it.
	slice := east.Slices("api")[0]
	slice.Labels[export.LabelSliceManagedBy] = "another"
	updated, err := east.slices.Update(s.Context(), &slice, metav1.UpdateOptions{})
	s.must(err)
	east.ExpectEvent(updated, apply.EventForeignObject)
	// It is not published while it belongs to another manager, as the export reports.
	published := west.Slices("api")[0].Name
	manager := func(name string) {
		west.Patch(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), published,
			`{"metadata":{"labels":{"`+export.LabelSliceManagedBy+`":"`+name+`"}}}`)
	}
	manager("another")
	west.ExpectReady("api", "Failed: The endpoints could not be published: EndpointSlice "+s.namespace+"/"+published+" has a name that")
	manager(export.Manager)
	west.ExpectReady("api", "Ready: ")
	west.Withdraw("api")
	s.Expect(View{"api": gone}, east)
	if after, err := east.slices.Get(s.Context(), slice.Name, metav1.GetOptions{}); err == nil &&
		after.ResourceVersion != updated.ResourceVersion {
		s.Errorf("the other's EndpointSlice was changed: %v", after)
	}
}

// heldSlice: another component's finalizer keeps the slice of a withdrawn export. It contributes nothing.
// If the service is exported again, the export waits, and reports why.
func heldSlice(s *Set, east, west *Cluster) {
	west.Export("web:10.65.0.10")
	s.Expect(web(ofWest))
	held := west.Slices("web")[0].Name
	hold := func(finalizers string) {
		west.Patch(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), held, `{"metadata":{"finalizers":`+finalizers+`}}`)
	}
	hold(`["example.org/held"]`)
	west.Withdraw("web")
	s.Expect(web(gone), east)
	west.PutExport("web", "{}")
	west.ExpectReady("web", "remove its finalizers")
	s.Holds(20*time.Second, web(gone), east)
	hold("null")
	s.Expect(web(ofWest))
}

// unreadable: the schema accepts "t" in a time, but Go does not. Such an object stops neither a running controller nor
// a starting one.
func unreadable(s *Set, east, _ *Cluster) {
	spoil := func() {
		for _, resource := range []string{"serviceexports", "serviceimports"} {
			east.Patch(mcsResource(resource), "web", `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-01t00:00:00Z"}]}}`, "status")
		}
	}
	east.Export("web:10.64.0.10", "db:10.64.0.11")
	seen := View{"web": ofEast, "db": "east/10.64.0.11 -> VIP"}
	s.Expect(seen)
	spoil()
	s.Pass(5 * time.Second)
	east.SetEndpoints("db", "10.64.0.12")
	seen = seen.With("db", "east/10.64.0.12 -> VIP")
	s.Expect(seen)
	east.Stop()
	spoil()
	east.Start()
	s.Pass(5 * time.Second)
	s.Expect(seen)
}
