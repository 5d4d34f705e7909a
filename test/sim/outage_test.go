// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"net/http"
	"path"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

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
		must(t, east.Kube.CoreV1().Services(sim.Namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
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
