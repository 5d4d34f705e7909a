// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

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
	const refusals = 5
	for _, answer := range apiserver.Answers[:refusals] {
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

// listing returns a fault of the lists and watches of some resources.
func listing(fault apiserver.Fault, resources ...string) apiserver.Fault {
	return func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
		if req.Method == http.MethodGet && slices.Contains(resources, path.Base(req.URL.Path)) {
			return fault(req, serve)
		}
		return serve(req)
	}
}

// away returns the fault that some resources cannot be read.
func away(resources ...string) apiserver.Fault {
	return listing(apiserver.Refusal(apierrors.NewServiceUnavailable("simulated")), resources...)
}

// TestOutageOfTheOwnAPIServer: a Service is recreated during an outage of the API server. It must not be exported with
// its old endpoints, even if these are read later than the Service.
func TestOutageOfTheOwnAPIServer(t *testing.T) {
	sim.Run(t, []string{"east"}, func(t *testing.T, set *sim.ClusterSet) {
		east := set.Cluster("east")
		east.Export("web:10.64.0.1")
		expect(t, east, map[string]string{"web": "east/10.64.0.1 -> VIP"})
		east.Must(east.Kube.CoreV1().Services(sim.Namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		// This service is not exported, and its endpoints were read before those of an exported service.
		east.SetEndpoints("web", "10.64.0.9")
		east.Export("other:10.64.0.5")
		expect(t, east, map[string]string{"other": "east/10.64.0.5 -> VIP"})
		before := east.API.Revision()

		rest := []string{"services", "namespaces", "nodes", "serviceexports", "serviceimports"}
		east.API.SetFault("east", away(append(rest, "endpointslices")...))
		sim.Wait(2 * time.Second)
		east.Serve("web:10.64.0.10")
		east.API.SetFault("east", away("endpointslices"))
		// The gate waits for 7 s after everything else was read. An informer that failed for 4 s lists again within 4.8 s.
		sim.Wait(2 * time.Second)
		east.API.SetFault("east", nil)
		sim.Wait(10 * time.Second)
		expect(t, east, map[string]string{"web": "east/10.64.0.10 -> VIP", "other": "east/10.64.0.5 -> VIP"})
		events, _ := east.API.After(before)
		for _, each := range events {
			slice, ok := each.Object.(*discoveryv1.EndpointSlice)
			if ok && slice.Labels[v1beta1.LabelSourceCluster] != "" && len(slice.Endpoints) > 0 &&
				slice.Endpoints[0].Addresses[0] == "10.64.0.9" {
				t.Errorf("an endpoint was exported of when there was no Service: %s", slice.Name)
			}
		}
	})
}
