// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// requestsOf counts a host's requests to the API server of a cluster, by verb, resource and subresource.
func requestsOf(c *sim.Cluster, host string) map[string]int {
	counts := map[string]int{}
	for request, times := range c.API.Requests() {
		if request.Host == host {
			counts[strings.TrimSuffix(request.Verb+" "+request.Resource.Resource+"/"+request.Subresource, "/")] += times
		}
	}
	return counts
}

// TestRequestsOfAChange pins the number of requests that each change costs: in the cluster where it is made, west or
// north, and in a cluster that only imports, east. Nothing is read, and no Event is sent.
func TestRequestsOfAChange(t *testing.T) {
	type list []string
	// A ServiceImport is created first, because objects that it owns contain its UID. Its spec and its status need
	// separate requests, because it has a status subresource.
	const (
		publish   = "create endpointslices"        // the cluster's exports with the snapshot, which members read
		report    = "update serviceexports/status" // Valid, Ready and Conflict in one request
		imported  = "create serviceimports"        // owns the objects below
		derived   = "create services"              // the API server allocates its IP
		specified = "update serviceimports"        // the IP of the derived Service, or changes from the exports
		told      = "update serviceimports/status" // the clusters, and Ready for the current generation
		copied    = "create endpointslices"        // a copy of a member's slice
		changed   = "update endpointslices"        // the published slice, or its copy
		withdrawn = "delete endpointslices"
	)
	sim.Run(t, []string{"east", "west", "north"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west, north := set.Cluster("east"), set.Cluster("west"), set.Cluster("north")
		for i, each := range set.Clusters()[1:] {
			each.Export(fmt.Sprintf("other:10.6%d.0.9", 5+i)) // keeps lists from being empty, so they are believed
			each.Serve(fmt.Sprintf("web:10.6%d.0.1", 5+i), fmt.Sprintf("db!10.6%d.0.2", 5+i))
		}
		for _, row := range []struct {
			change           string
			do               func()
			there            *sim.Cluster
			requests, inEast list
		}{
			{"nothing", func() {}, west, nil, nil},
			{
				"an export with an IP", func() { west.PutExport("web", "{}") }, west,
				list{publish, imported, derived, specified, told, report},
				list{imported, derived, specified, told, copied},
			},
			{
				"a headless export", func() { west.PutExport("db", "{}") }, west,
				list{publish, imported, told, report},
				list{imported, told, copied},
			},
			{"an endpoint", func() { west.SetEndpoints("web", "10.65.0.3") }, west, list{changed}, list{changed}},
			{"a headless endpoint", func() { west.SetEndpoints("db", "10.65.0.4") }, west, list{changed}, list{changed}},
			{
				"a port", func() {
					for _, each := range []*sim.Cluster{north, west} {
						each.PutService("web", "{ports: [{name: http, port: 81}]}")
					}
				}, west,
				list{changed, specified, told, "update services"},
				list{changed, specified, told, "update services"},
			},
			{"another cluster", func() { north.PutExport("web", "{}") }, north, list{publish, told, report}, list{told, copied}},
			{"another cluster, headless", func() { north.PutExport("db", "{}") }, north, list{publish, told, report}, list{told, copied}},
			{"a cluster less", func() { north.Withdraw("web") }, north, list{withdrawn, told}, list{withdrawn, told}},
			{
				"a withdrawn export", func() { west.Withdraw("web") }, west,
				list{withdrawn, "delete serviceimports", "delete services"},
				list{withdrawn, "delete serviceimports", "delete services"},
			},
		} {
			sim.Wait(time.Minute)
			there, here := requestsOf(row.there, row.there.Name), requestsOf(east, east.Name)
			row.do()
			sim.Wait(20 * time.Second)
			for _, each := range []struct {
				cluster *sim.Cluster
				before  map[string]int
				want    list
			}{{row.there, there, row.requests}, {east, here, row.inEast}} {
				var got []string
				for request, times := range requestsOf(each.cluster, each.cluster.Name) {
					if strings.Contains(request, " leases") || strings.HasPrefix(request, "watch ") {
						continue // these depend on time
					}
					for range times - each.before[request] {
						got = append(got, request)
					}
				}
				slices.Sort(got)
				slices.Sort(each.want)
				if !slices.Equal(got, each.want) {
					t.Errorf("%s: requests in %s\n got %q\nwant %q", row.change, each.cluster.Name, got, each.want)
				}
			}
		}
	})
}

// TestRequestsToMembers: every list and every watch asks a member for its published slices and its heartbeat alone, in pages,
// over one connection: slices that are not exported are never sent.
func TestRequestsToMembers(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		west, asked, mu := set.Cluster("west"), map[string]bool{}, sync.Mutex{}
		west.API.SetFault("east", func(r *http.Request, serve apiserver.Serve) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			verb, query := "list", r.URL.Query()
			if query.Get("watch") == "true" {
				verb = "watch"
			}
			asked[fmt.Sprintf("%s %s %s labels:%s fields:%s", r.Method, verb, r.URL.Path, query.Get("labelSelector"), query.Get("fieldSelector"))] = true
			if r.ProtoMajor != 2 || verb == "list" && query.Get("limit") == "" {
				t.Errorf("%s by %s, or it has no limit", r.URL, r.Proto)
			}
			return serve(r)
		})
		set.Cluster("east").Restart()
		west.Export("web:10.65.0.1")
		sim.Wait(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		const published = " /apis/discovery.k8s.io/v1/endpointslices labels:multicluster.kubernetes.io/source-cluster=west fields:"
		const heartbeat = " /apis/coordination.k8s.io/v1/namespaces/clusterset-dns/leases labels: fields:metadata.name=clusterset-dns-heartbeat"
		want := []string{"GET list" + heartbeat, "GET list" + published, "GET watch" + heartbeat, "GET watch" + published}
		if got := slices.Sorted(maps.Keys(asked)); !slices.Equal(got, want) {
			t.Errorf("requests are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if count := set.Network.Connections("east", "west"); count != 1 {
			t.Errorf("there are %d connections to west", count)
		}
	})
}

// TestRotatedCredentials (istio/istio#57269, #60612): a member's Secret is rotated repeatedly. Each credential is used
// without a restart, nothing remains of previous credentials, and no answer changes.
func TestRotatedCredentials(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		west.Export("web:10.65.0.1")
		count := func() (goroutines, connections int) {
			sim.Wait(2 * time.Minute)
			return runtime.NumGoroutine(), set.Network.Connections("east", "west")
		}
		goroutines, connections := count()
		var rotated time.Time
		for i := range 300 {
			rotated = time.Now()
			east.PutSecret("member-west", "west", west.Kubeconfig(fmt.Sprintf("east-%d", i)))
			sim.Wait(time.Duration(i%10) * 100 * time.Millisecond) // even while it connects
		}
		expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})
		if now, open := count(); now > goroutines+5 || open != connections {
			t.Errorf("%d goroutines and %d connections, before %d and %d", now, open, goroutines, connections)
		}
		// kubectl clusterset join waits for this.
		if first := east.Lease(memberstate.LeasePrefix + "west").Spec.RenewTime; first.Time.Before(rotated) {
			t.Errorf("the first heartbeat with the last credential, of %s, arrived at %s", rotated, first)
		}
		west.SetEndpoints("web", "10.65.9.9")
		expect(t, east, map[string]string{"web": "west/10.65.9.9 -> VIP"})
	})
}

// TestLeasesAtRest: while nothing changes, the heartbeat and one Lease of a member are applied per interval, and none is listed.
func TestLeasesAtRest(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east := set.Cluster("east")
		sim.Wait(time.Minute + 123) // ns, which the API does not keep
		set.Cluster("west").Restart()
		east.Restart()
		sim.Wait(5 * time.Minute)
		before := requestsOf(east, "east")
		sim.Wait(10 * time.Minute)
		after := requestsOf(east, "east")
		writes, lists := after["patch leases"]-before["patch leases"], after["list leases"]-before["list leases"]
		if want := 2 * int(10*time.Minute/liveness.HeartbeatInterval); writes > want+2 || writes < want-2 || lists > 0 {
			t.Errorf("%d Leases are written, want %d, and they are listed %d times", writes, want, lists)
		}
	})
}
