// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
)

// Prefer creates or changes a ServiceExport that exports the prefer annotation.
func (c *Cluster) Prefer(service, value string) {
	c.PutExport(service, fmt.Sprintf("{exportedAnnotations: {%q: %q}}", export.AnnotationPrefer, value))
}

// ExpectHints waits for the hints of an import, as text: the zones of each endpoint, the trafficDistribution of the
// derived Service, and the condition PreferCluster.
func (c *Cluster) ExpectHints(service, want string) {
	c.set.Becomes("hints of "+service+" in "+c.Name, want, func() (string, error) {
		var texts []string
		for _, slice := range c.Slices(service) {
			for _, endpoint := range slice.Endpoints {
				zones := []string{"-"}
				if endpoint.Hints != nil {
					zones = nil
					for _, zone := range endpoint.Hints.ForZones {
						zones = append(zones, strings.TrimSuffix(zone.Name, "."+export.Domain))
					}
				}
				texts = append(texts, slice.Labels[export.LabelSourceCluster]+"="+strings.Join(zones, ","))
			}
		}
		slices.Sort(texts)
		derived, err1 := c.derivedOf(service)
		imported, err2 := c.importOf(service)
		if err := errors.Join(err1, err2); err != nil {
			return "", err
		}
		texts = append(texts, ptr.Deref(derived.Spec.TrafficDistribution, "-"))
		if condition := meta.FindStatusCondition(imported.Status.Conditions, placement.ConditionPreferCluster); condition != nil {
			texts = append(texts, string(condition.Status)+" "+condition.Reason)
		}
		return strings.Join(texts, " "), nil
	})
}

// PutNode creates a node in a zone, or moves it there; "null" means no zone.
func (c *Cluster) PutNode(name, zone string) {
	c.Put(fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {%s: %s}}}", name, corev1.LabelTopologyZone, zone))
	c.nodes = append(c.nodes, name)
}

// RemoveNode deletes a node.
func (c *Cluster) RemoveNode(name string) {
	c.set.must(c.Kube.CoreV1().Nodes().Delete(c.set.Context(), name, metav1.DeleteOptions{}))
}

// preferCluster: hints follow nodes and zones. A restart writes nothing, and applies changes made in the meantime.
func preferCluster(s *Set, east, west *Cluster) {
	for _, c := range []*Cluster{east, west} {
		c.Serve(map[*Cluster]string{east: "web:10.64.0.10", west: "web:10.65.0.10"}[c])
		c.Prefer("web", placement.PreferCluster)
	}
	const home = "east=east-a,east-b west=elsewhere PreferClose True InEffect"
	east.ExpectHints("web", home)
	west.ExpectHints("web", "east=elsewhere west=west-a,west-b PreferClose True InEffect")
	east.PutNode("new", "null")
	east.ExpectHints("web", "east=- west=- - True InEffect")
	east.ExpectMetric(1, "clusterset_controller_nodes_without_zone")
	east.RemoveNode("new")
	east.ExpectHints("web", home)
	s.rests(east)
	east.Stop()
	east.PutNode("new", "east-c")
	east.Start()
	const more = "east=east-a,east-b,east-c west=elsewhere PreferClose True InEffect"
	east.ExpectHints("web", more)
	for _, c := range s.clusters {
		c.PutExport("web", "{exportedAnnotations: null}")
	}
	const none = "east=- west=- -"
	east.ExpectHints("web", none)

	// The operator's preference applies to imports without their own.
	east.Options.Prefer = placement.PreferCluster
	east.Restart()
	east.ExpectHints("web", more)
	west.ExpectHints("web", none)
}
