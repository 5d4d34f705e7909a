// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// properties are the ClusterProperties of KEP-2149, which about defines.
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

// Describe sets a ClusterProperty. The controller reads it within a minute.
func (c *Cluster) Describe(name, value string) {
	c.set.Helper()
	if !c.described {
		c.Put(about)
		c.described = true
	}
	c.set.Eventually("ClusterProperty", func() error {
		return c.put(c.set.Context(), fmt.Sprintf(
			"{apiVersion: about.k8s.io/v1beta1, kind: ClusterProperty, metadata: {name: %s}, spec: {value: %s}}", name, value))
	})
}

// Choose sets the clusters that an export is for; null is all.
func (c *Cluster) Choose(service, clusters string) {
	c.set.Helper()
	c.Put(fmt.Sprintf("{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: "+
		"{name: %s, annotations: {%s: %s}}}", service, export.AnnotationClusters, clusters))
}

// chosenClusters: an export is narrowed and widened, and the properties of its readers change, also while it is silent.
func chosenClusters(s *Set) {
	east, west, north := s.clusters[0], s.clusters[1], s.clusters[2]
	const none = gone + " [Conflict=NoConflicts Ready=Failed Valid=InvalidClusters]"
	east.Describe("region", "eu")
	north.Describe("region", "us")
	west.Export("web:10.65.0.10")
	s.Expect(web(ofWest))
	west.Choose("web", "east")
	s.Except(north, web(gone), web(ofWest))
	west.SetEndpoints("web", "10.65.0.11")
	s.Except(north, web(gone), web("west/10.65.0.11 -> VIP"))
	west.SetEndpoints("web", "10.65.0.10")
	west.Choose("web", "region in (us)")
	s.Except(east, web(gone), web(ofWest))
	// The others take part in the same name all the same.
	east.Export("web:10.64.0.10")
	s.Except(east, web(ofEast), web(ofBoth))
	east.Choose("web", "nobody")
	s.Except(east, web(ofEast), web(ofWest))
	east.Withdraw("web")
	s.Except(east, web(gone), web(ofWest))
	// It is chosen by what it is now.
	north.Describe("region", "asia")
	s.Except(west, web(ofWest), web(gone))
	east.Describe("region", "us")
	s.Except(north, web(gone), web(ofWest))
	// An export whose Service is replaced keeps its import where it is chosen.
	ips := east.IPs("web")
	west.DeleteService("web")
	s.Expect(web("-> VIP (Pending)"), east)
	s.Expect(web(gone), north)
	west.Serve("web:10.65.0.10")
	s.Except(north, web(gone), web(ofWest))
	east.IPs("web", ips...)
	// What is not valid is for nobody.
	west.Choose("web", "same(region)")
	s.Except(west, web(none), web(gone))
	west.Choose("web", "'west; region=us'")
	s.Except(north, web(gone), web(ofWest))

	p := Pair{east, west}
	s.cut(p)
	s.Judged(p, "Silent")
	s.Expect(web(ofWest), east)
	east.Restart()
	s.Holds(15*time.Second, web(ofWest), east)
	east.Describe("region", "eu")
	s.Expect(web(gone), east)
	east.Restart()
	s.Holds(15*time.Second, web(gone), east)
	s.restore(p)
	s.Judged(p, "Heard")
	s.Expect(web(gone), east)
	west.Choose("web", "null")
	s.Expect(web(ofWest))
	west.Choose("web", "'*'")
	s.Expect(web(ofWest))
}
