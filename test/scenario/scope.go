// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// properties are the ClusterProperties of KEP-2149.
var properties = schema.GroupVersionResource{Group: "about.k8s.io", Version: "v1beta1", Resource: "clusterproperties"}

const about = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterproperties.about.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for tests"}
spec:
  group: about.k8s.io
  scope: Cluster
  names: {plural: clusterproperties, singular: clusterproperty, kind: ClusterProperty, listKind: ClusterPropertyList}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {value: {type: string}}}}
`

// Describe sets a ClusterProperty. The controller reads it within half a minute.
func (c *Cluster) Describe(name, value string) {
	if !c.described {
		c.Put(about)
		c.described = true
	}
	c.set.Eventually("ClusterProperty", func() error {
		return c.put(c.set.Context(), fmt.Sprintf(
			"{apiVersion: about.k8s.io/v1beta1, kind: ClusterProperty, metadata: {name: %s}, spec: {value: %q}}", name, value))
	})
}

// Choose sets the clusters that may import a service; null means all.
func (c *Cluster) Choose(service, clusters string) {
	c.AnnotateExport(service, export.AnnotationClusters, clusters)
}

// chosenClusters: an export is narrowed and widened, and its readers' properties change, even while its cluster is unreachable.
func chosenClusters(s *Set) {
	east, west, north := s.clusters[0], s.clusters[1], s.clusters[2]
	const none = gone + " [Conflict=NoConflicts Ready=Failed Valid=InvalidClusters]"
	east.Describe("region", "eu")
	north.Describe("region", "us")
	west.Export("web:10.65.0.10")
	s.Expect(web(ofWest))
	west.Choose("web", "east")
	s.Except(north, web(gone), web(ofWest))
	west.Choose("web", "region in (us)")
	s.Except(east, web(gone), web(ofWest))
	west.ExpectValid("web", "The Service can be exported.")
	// The current properties decide.
	north.Describe("region", "asia")
	s.Except(west, web(ofWest), web(gone))
	west.ExpectValid("web", "annotation clusterset-dns.github.io/clusters: it selects no member.")
	east.Describe("region", "us")
	s.Except(north, web(gone), web(ofWest))
	// If the Service of an export is replaced, clusters that may import it keep their import.
	ips := east.IPs("web")
	west.DeleteService("web")
	s.Expect(web("-> VIP (Pending)"), east)
	s.Expect(web(gone), north)
	west.Serve("web:10.65.0.10")
	s.Except(north, web(gone), web(ofWest))
	east.IPs("web", ips...)
	// An invalid selector matches no cluster.
	west.Choose("web", "same(region)")
	s.Except(west, web(none), web(gone))
	west.Choose("web", "'west; region=us'")
	s.Except(north, web(gone), web(ofWest))

	p := Pair{east, west}
	s.silence(p)
	s.Expect(web(ofWest), east)
	east.Restart()
	s.Holds(15*time.Second, web(ofWest), east)
	east.Describe("region", "eu")
	s.Expect(web(gone), east)
	east.Restart()
	s.Holds(15*time.Second, web(gone), east)
	s.hear(p)
	s.Expect(web(gone), east)
	west.Choose("web", "null")
	s.Expect(web(ofWest))
}

// ExpectValid waits until the message of the condition Valid of a ServiceExport has this end.
func (c *Cluster) ExpectValid(service, end string) {
	c.set.Eventually("Valid of "+service, func() error {
		if valid := c.exportCondition(service, "Valid"); !strings.HasSuffix(valid, end) {
			return errors.New(valid)
		}
		return nil
	})
}

// ExpectReady waits until the reason and the message of the condition Ready of a ServiceExport have a part.
func (c *Cluster) ExpectReady(service, part string) {
	c.set.Eventually("Ready of "+service, func() error {
		if ready := c.exportCondition(service, "Ready"); !strings.Contains(ready, part) {
			return errors.New(ready)
		}
		return nil
	})
}

// exportCondition returns the reason and the message of a condition of a ServiceExport, or an empty text.
func (c *Cluster) exportCondition(service, condition string) string {
	exported, err := c.exportOf(service)
	c.set.must(err)
	if found := meta.FindStatusCondition(exported.Status.Conditions, condition); found != nil {
		return found.Reason + ": " + found.Message
	}
	return ""
}

// refusedContributions: each importing cluster limits the contributions of members for itself.
func refusedContributions(s *Set) {
	east, west, north := s.clusters[0], s.clusters[1], s.clusters[2]
	p := Pair{east, west}
	west.Export("web:10.65.0.10", "db!10.65.0.20")
	north.Export("web:10.66.0.10")
	all := View{
		"web": "north/10.66.0.10 west/10.65.0.10 -> VIP", "db": "west/10.65.0.20 -> 10.65.0.20",
	}
	s.Expect(all)
	s.Annotate(p, scope.AcceptAnnotation, "other, "+s.namespace+"/d?")
	s.Except(east, all.With("web", "north/10.66.0.10 -> VIP"), all)
	// A typo changes nothing, even across a restart.
	s.Annotate(p, scope.AcceptAnnotation, "Other")
	east.ExpectEvent(s.secretOf(p), memberstate.EventMemberCredentialInvalid)
	s.Except(east, all.With("web", "north/10.66.0.10 -> VIP"), all)
	east.Restart()
	s.Except(east, all.With("web", "north/10.66.0.10 -> VIP"), all)
	s.Annotate(p, scope.AcceptAnnotation, "other, "+s.namespace+"/d?")
	s.Judged(p, "Alive")
	s.Except(east, all.With("web", "north/10.66.0.10 -> VIP"), all)

	// Contributions of an unreachable member end, too, and do not come back after a restart.
	s.silence(p)
	s.Annotate(p, scope.AcceptAnnotation, "other")
	s.Except(east, View{"web": "north/10.66.0.10 -> VIP", "db": gone}, all)
	east.Restart()
	s.Holds(15*time.Second, View{"web": "north/10.66.0.10 -> VIP", "db": gone}, east)
	s.hear(p)
	s.Holds(15*time.Second, View{"web": "north/10.66.0.10 -> VIP", "db": gone}, east)
	s.Annotate(p, scope.AcceptAnnotation, "")
	s.Expect(all)

	// Only namespaces and members that opt in are accepted.
	east.Options.Accept = []string{}
	east.Restart()
	s.Except(east, View{"web": gone, "db": gone}, all)
	east.Put(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s: 'true'}}}", s.namespace,
		scope.AcceptLabel))
	s.Expect(all)
	east.Put(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s: null}}}", s.namespace,
		scope.AcceptLabel))
	s.Except(east, View{"web": gone, "db": gone}, all)
	// The cluster's own exports are always accepted.
	east.Export("web:10.64.0.10")
	s.Except(east, View{"web": ofEast, "db": gone}, all.With("web", "east/10.64.0.10 north/10.66.0.10 west/10.65.0.10 -> VIP"))
}

// otherSet: a member of another cluster set is quarantined, even if it has just joined; a cluster without a set name is not.
func otherSet(s *Set, east, west *Cluster) {
	p, back := Pair{east, west}, Pair{west, east}
	const name, lease = "clusterset.k8s.io", memberstate.LeasePrefix + "west"
	west.Export("web:10.65.0.10")
	s.Expect(web(ofWest))
	east.Describe(name, "blue")
	s.Holds(70*time.Second, web(ofWest), east, west)
	s.Judged(p, "Alive")
	s.Judged(back, "Alive")
	west.Describe(name, "green")
	s.Judged(p, "OtherClusterSet")
	s.Judged(back, "OtherClusterSet")
	east.ExpectEvent(s.secretOf(p), memberstate.EventMemberQuarantined, "another cluster set", name)
	west.Export("db!10.65.0.20")
	s.Expect(View{"db": "west/10.65.0.20 -> 10.65.0.20"}, west)
	kept := View{"web": ofWest, "db": gone}
	s.Holds(15*time.Second, kept, east)
	east.Restart()
	s.Judged(p, "OtherClusterSet")
	s.Holds(15*time.Second, kept, east)

	// A member that has just joined contributes nothing. Records about a member that left count no longer.
	east.Stop()
	s.editLease(east, lease, func(lease *coordinationv1.Lease) { lease.Annotations[member.HeartbeatUIDAnnotation] = "another" })
	s.Leave(p)
	east.Start()
	s.Expect(View{"web": gone, "db": gone}, east)
	s.LeaseSays(p, "")
	s.Join(p)
	s.Judged(p, "OtherClusterSet")
	s.Holds(15*time.Second, View{"web": gone, "db": gone}, east)
	if uid := east.Lease(lease).Annotations[member.HeartbeatUIDAnnotation]; uid != "" {
		s.Errorf("nothing was imported from the member, but %s must stay its UID", uid)
	}
	east.Describe(name, "green")
	s.Judged(p, "Alive")
	s.Judged(back, "Alive")
	s.Expect(View{"web": ofWest, "db": "west/10.65.0.20 -> 10.65.0.20"})
}
