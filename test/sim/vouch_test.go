// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// TestLargeImportVouches: west imports a service of 400 slices, and no longer does, at an API server that takes 200 ms
// for each write. What west exports is up to date meanwhile, so its heartbeat goes on.
func TestLargeImportVouches(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i, c := range []*sim.Cluster{east, west} {
			c.Serve("web", false, fmt.Sprintf("10.6%d.0.1", 4+i))
			c.Export("web")
		}
		sim.Wait(5 * time.Second)
		writes := 0
		west.API.SetFault("west", func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
			if req.Method != http.MethodGet && strings.Contains(req.URL.Path, "/endpointslices") {
				writes++
				sim.Wait(200 * time.Millisecond)
			}
			return serve(req)
		})
		sim.Wait(30 * time.Second)
		_, err := east.Kube.CoreV1().Services(sim.Namespace).Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "big"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}, metav1.CreateOptions{})
		must(t, err)
		ready, name, port, protocol := true, "http", int32(8080), corev1.ProtocolTCP
		for i := range 400 {
			_, err := east.Kube.DiscoveryV1().EndpointSlices(sim.Namespace).Create(t.Context(), &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("big-%d", i), Labels: map[string]string{
					discoveryv1.LabelServiceName: "big", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
				}},
				AddressType: discoveryv1.AddressTypeIPv4,
				Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
				Endpoints: []discoveryv1.Endpoint{{
					Addresses:  []string{fmt.Sprintf("10.64.%d.%d", 1+i/200, 1+i%200)},
					Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
				}},
			}, metav1.CreateOptions{})
			must(t, err)
		}
		for _, change := range []func(string){east.Export, east.Withdraw} {
			writes = 0
			change("big")
			for began := time.Now(); time.Since(began) < 3*time.Minute; sim.Wait(time.Second) {
				if got := east.See("web"); strings.Contains(got, "west/10.65.0.1~") {
					t.Fatalf("after %s and %d writes east demotes west: %s", time.Since(began), writes, got)
				}
			}
			if writes < 400 {
				t.Fatalf("west made %d writes", writes)
			}
		}
	})
}

// TestNodesForbidden: nodes may not be listed, which only hints need. A controller that restarts publishes all the same.
func TestNodesForbidden(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i, c := range []*sim.Cluster{east, west} {
			c.Serve("web", false, fmt.Sprintf("10.6%d.0.1", 4+i))
			c.Export("web")
		}
		expect(t, east, map[string]string{"web": "east/10.64.0.1 west/10.65.0.1 -> VIP"})
		west.StopController()
		west.API.SetFault("west", func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/nodes") {
				body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}`
				return &http.Response{
					StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(body)), Request: req,
				}, nil
			}
			return serve(req)
		})
		west.StartController()
		sim.Wait(10 * time.Second)
		west.SetEndpoints("web", "10.65.0.2")
		expect(t, east, map[string]string{"web": "east/10.64.0.1 west/10.65.0.2 -> VIP"})
		sim.Wait(3 * time.Minute)
		expect(t, east, map[string]string{"web": "east/10.64.0.1 west/10.65.0.2 -> VIP"})
	})
}

// TestNodesAreLate: a controller that restarts knows the zones before it decides about hints, so it writes nothing.
func TestNodesAreLate(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		_, err := west.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "node", Labels: map[string]string{corev1.LabelTopologyZone: "a"},
		}}, metav1.CreateOptions{})
		must(t, err)
		prefersCluster := func(o *controller.Options) { o.Prefer = "cluster" }
		west.StopController()
		west.StartController(prefersCluster)
		for i, c := range []*sim.Cluster{east, west} {
			c.Serve("web", false, fmt.Sprintf("10.6%d.0.1", 4+i))
			c.Export("web")
		}
		expect(t, west, map[string]string{"web": "east/10.64.0.1 west/10.65.0.1 -> VIP"})
		west.StopController()
		west.API.SetFault("west", func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/nodes") {
				sim.Wait(3 * time.Second)
			}
			return serve(req)
		})
		replica := west.StartReplica(prefersCluster)
		sim.Wait(time.Minute)
		if got := replica.Writes(); len(got) > 0 {
			t.Errorf("it wrote %q", got)
		}
	})
}
