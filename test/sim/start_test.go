// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

var forbidden = apiserver.Refusal(apierrors.NewForbidden(schema.GroupResource{}, "", nil))

// TestStarts starts the controllers of two clusters while their API servers refuse requests for as long as a backoff takes to
// reach its longest delay. Nodes, which only hints need, delay nothing; without properties, those in the heartbeat count, so
// imports that depend on them stay. If all requests were refused, everything is published within seconds after that.
func TestStarts(t *testing.T) {
	type row struct {
		name  string
		fault apiserver.Fault
		ends  bool // whether the fault ends before the change
	}
	rows := []row{
		{"nodes are forbidden", listing(forbidden, "nodes"), false},
		{"properties are forbidden", listing(forbidden, "clusterproperties"), false},
		{"lists of properties fail", away("clusterproperties"), false},
	}
	for _, answer := range apiserver.Answers[:5] {
		rows = append(rows, row{answer.Name, answer.Fault, true})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				east, west := set.Cluster("east"), set.Cluster("west")
				east.Describe("region", "eu")
				west.Serve("web:10.65.0.1")
				west.AnnotateExport("web", export.AnnotationClusters, "region=eu")
				sim.Wait(2 * time.Minute)
				expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})
				for _, each := range set.Clusters() {
					each.Stop()
					each.API.SetFault(each.Name, row.fault)
					each.Start()
				}
				sim.Wait(5 * time.Minute)
				if row.ends {
					east.API.SetFault("east", nil)
					west.API.SetFault("west", nil)
				}
				west.SetEndpoints("web", "10.65.0.2")
				sim.Wait(12 * time.Second)
				expect(t, east, map[string]string{"web": "west/10.65.0.2 -> VIP"})
				lease := east.Lease(member.HeartbeatLease)
				if text := lease.Annotations[scope.PropertiesAnnotation]; text != `{"region":"eu"}` ||
					time.Since(lease.Spec.RenewTime.Time) > 6*time.Second {
					t.Errorf("the heartbeat is of %s, and has %q", lease.Spec.RenewTime, text)
				}
			})
		})
	}
}

// TestUnknownProperties: a negative selector of allowed clusters does not match a cluster with unknown properties.
func TestUnknownProperties(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i, c := range set.Clusters() {
			c.Serve([]string{"web:10.64.0.1", "web:10.65.0.1"}[i])
			c.PutExport("web", fmt.Sprintf("{exportedAnnotations: {%q: region!=us}}", export.AnnotationAllowedClusters))
		}
		inside := map[string]string{"web": "east/10.64.0.1 west/10.65.0.1 -> VIP"}
		outside := map[string]string{"web": "east/10.64.0.1 west/10.65.0.1- -> VIP"}
		sim.Wait(time.Minute)
		expect(t, east, inside) // west has no properties
		// The next controller of west has neither the right to list properties nor an old heartbeat that has them.
		west.Stop()
		west.DeleteLease(member.HeartbeatLease)
		west.API.SetFault("", listing(forbidden, "clusterproperties"))
		west.Start()
		sim.Wait(65 * time.Second)
		expect(t, east, outside)
		east.Restart()
		sim.Wait(30 * time.Second)
		expect(t, east, outside)
		west.API.SetFault("", nil)
		sim.Wait(65 * time.Second)
		expect(t, east, inside)
	})
}

// TestNodesAreLate: a restarted controller reads the zones before it decides about hints, so it writes nothing.
func TestNodesAreLate(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		west.PutNode("node", "a")
		west.Options.Prefer = "cluster"
		west.Restart()
		for i, c := range []*sim.Cluster{east, west} {
			c.Export(fmt.Sprintf("web:10.6%d.0.1", 4+i))
		}
		expect(t, west, map[string]string{"web": "east/10.64.0.1 west/10.65.0.1 -> VIP"})
		west.Stop()
		west.API.SetFault("west", listing(apiserver.Slow(3*time.Second), "nodes"))
		west.Start()
		sim.Wait(time.Minute)
		if got := west.Controller.Writes(); len(got) > 0 {
			t.Errorf("it wrote %q", got)
		}
	})
}

// TestOwnID: the id of the cluster is a flag or a ClusterProperty. A controller that starts with a different id than
// before exits, so that nothing is withdrawn, until the heartbeat Lease is deleted.
func TestOwnID(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		west.Export("web:10.65.0.1")
		kept := map[string]string{"web": "west/10.65.0.1 -> VIP"}
		expect(t, east, kept)
		restart := func(flag, want string) {
			t.Helper()
			west.Options.Cluster = flag
			west.Restart()
			sim.Wait(time.Minute)
			if err := west.Controller.Ended(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("it ended with %v, want %s", err, want)
			}
		}
		restart("", "--cluster-id")
		west.Describe("cluster.clusterset.k8s.io", "Not A Name")
		restart("", "ClusterProperty")
		west.Describe("cluster.clusterset.k8s.io", "name.registry")
		restart("", "was west before")
		expect(t, east, kept)
		west.DeleteLease(member.HeartbeatLease)
		restart("", "")
		expect(t, west, map[string]string{"web": "name.registry/10.65.0.1 -> VIP"})
	})
}
