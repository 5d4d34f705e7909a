// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// known makes a replica identifiable in the requests to its API server: the host is its identity.
func known(identity string) func(*controller.Options) {
	return func(options *controller.Options) {
		replica(identity)(options)
		options.Config.Host = "https://" + identity
	}
}

// slowLists is a fault: the API server delays each list, streamed or not, as in a large cluster.
func slowLists(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
	long := 100 * time.Millisecond
	if query := req.URL.Query(); query.Has("limit") || query.Has("sendInitialEvents") {
		long = 20 * time.Second
	}
	return apiserver.Slow(long)(req, serve)
}

// withoutHeartbeat returns the longest time without a renewal of a heartbeat since a revision, which was the newest at time
// at, and the time from the second replica's acquisition of the leader Lease to its first renewal, 0 if there was none.
func withoutHeartbeat(cluster *sim.Cluster, revision int64, at time.Time) (longest, first time.Duration) {
	var led time.Time
	events, _ := cluster.API.After(revision)
	for _, each := range events {
		lease, ok := each.Object.(*coordinationv1.Lease)
		switch {
		case ok && lease.Name == controller.LeaderLease && led.IsZero() && ptr.Deref(lease.Spec.HolderIdentity, "") == "second":
			led = lease.Spec.AcquireTime.Time
		case ok && lease.Name == member.HeartbeatLease:
			renewed := lease.Spec.RenewTime.Time
			if longest, at = max(longest, renewed.Sub(at)), renewed; !led.IsZero() && first == 0 {
				first = renewed.Sub(led)
			}
		}
	}
	return max(longest, time.Since(at)), first
}

// TestStandby: a standby replica only reads its own cluster. When it becomes the leader, it does not list again what it
// has read, and however long a list takes, other clusters do not demote its cluster. It sends the first heartbeat soon
// after it acquired the Lease.
func TestStandby(t *testing.T) {
	for _, row := range []struct {
		name   string
		end    func(leader *scenario.Controller)
		within time.Duration // until the first heartbeat of the next leader
	}{
		{"the leader is stopped", (*scenario.Controller).Stop, 10 * time.Second},
		{"the leader is killed", (*scenario.Controller).Kill, 25 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				east, west := set.Cluster("east"), set.Cluster("west")
				for i, each := range set.Clusters() {
					each.Export(fmt.Sprintf("web:10.6%d.0.1", 4+i))
				}
				east.Stop()
				first := east.StartReplica(known("first"))
				sim.Wait(5 * time.Second)
				var dialed atomic.Int64
				east.API.SetFault("second", slowLists)
				east.StartReplica(known("second"), func(options *controller.Options) {
					dial := options.Dial
					options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
						dialed.Add(1)
						return dial(ctx, network, address)
					}
				})
				sim.Wait(3 * time.Minute)
				before, revision, at := requestsOf(east, "second"), east.API.Revision(), time.Now()
				for request, times := range before {
					if verb, _, _ := strings.Cut(request, " "); verb != "get" && verb != "list" && verb != "watch" ||
						request == "list leases" {
						t.Errorf("the replica that does not lead sent %d × %s", times, request)
					}
				}
				if dialed.Load() > 0 {
					t.Error("the replica that does not lead connected to a member")
				}
				row.end(first)
				sim.Wait(time.Minute)
				if longest, first := withoutHeartbeat(east, revision, at); longest > row.within || first == 0 || first > 2*time.Second {
					t.Errorf("no heartbeat for %s, want %s or less; the first one came %s after the Lease, want 2 s or less", longest,
						row.within, first)
				}
				for request, times := range requestsOf(east, "second") {
					verb, _, _ := strings.Cut(request, " ")
					// The new leader reads the state of the members as the previous leader left it.
					if more := times - before[request]; more > 0 && (verb == "list" || verb == "watch") &&
						request != "list leases" {
						t.Errorf("the new leader sent %d × %s", more, request)
					}
				}
				west.SetEndpoints("web", "10.65.0.3")
				east.SetEndpoints("web", "10.64.0.3")
				sim.Wait(5 * time.Second)
				for _, each := range set.Clusters() {
					expect(t, each, map[string]string{"web": "east/10.64.0.3 west/10.65.0.3 -> VIP"})
				}
			})
		})
	}
}

// TestAllReplicasAreKilled: the next replica waits for the old Lease and for its lists in parallel, so that other
// clusters do not demote its cluster.
func TestAllReplicasAreKilled(t *testing.T) {
	sim.Run(t, []string{"east"}, func(t *testing.T, set *sim.ClusterSet) {
		east := set.Cluster("east")
		east.Stop()
		first := east.StartReplica(known("first"))
		sim.Wait(time.Minute)
		east.API.SetFault("second", listing(apiserver.Slow(10*time.Second), "endpointslices", "serviceexports"))
		revision, at := east.API.Revision(), time.Now()
		first.Kill()
		east.StartReplica(known("second"))
		sim.Wait(time.Minute)
		if longest, _ := withoutHeartbeat(east, revision, at); longest > controller.DefaultOptions().Liveness.StaleAfter {
			t.Errorf("no heartbeat for %s", longest)
		}
	})
}

// TestStandbyThatCannotRead: a replica whose cache is known to be out of date does not act as leader, and does not
// renew the heartbeat, for as long as that lasts.
func TestStandbyThatCannotRead(t *testing.T) {
	for _, resource := range []string{"endpointslices", "serviceexports"} {
		t.Run(resource, func(t *testing.T) {
			sim.Run(t, []string{"east"}, func(t *testing.T, set *sim.ClusterSet) {
				east := set.Cluster("east")
				east.Stop()
				first := east.StartReplica(known("first"))
				sim.Wait(5 * time.Second)
				second := east.StartReplica(known("second"))
				east.Export("web:10.64.0.1")
				sim.Wait(20 * time.Second)
				east.API.SetFault("second", away(resource))
				revision, at := east.API.Revision(), time.Now()
				first.Stop()
				east.SetEndpoints("web", "10.64.0.3")
				sim.Wait(2 * time.Minute)
				if holder := ptr.Deref(east.Lease(controller.LeaderLease).Spec.HolderIdentity, ""); holder != "second" {
					t.Errorf("the holder of the Lease is %q", holder)
				}
				writes := second.Writes()
				if longest, _ := withoutHeartbeat(east, revision, at); len(writes) > 0 || longest < 2*time.Minute {
					t.Errorf("wrote %v or a heartbeat", writes)
				}
				east.API.SetFault("second", nil)
				sim.Wait(10 * time.Second)
				expect(t, east, map[string]string{"web": "east/10.64.0.3 -> VIP"})
				revision, at = east.API.Revision(), time.Now()
				sim.Wait(10 * time.Second)
				if longest, _ := withoutHeartbeat(east, revision, at); longest > 6*time.Second {
					t.Errorf("no heartbeat for %s", longest)
				}
			})
		})
	}
}

// TestExportsBeforeMembers: a leader reads the members after it has compared its exports, but not later than heartbeats may
// be late, although writes hang.
func TestExportsBeforeMembers(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		east.Export("web:10.64.0.1")
		sim.Wait(10 * time.Second)
		east.Stop()
		east.SetEndpoints("web", "10.64.0.2")
		east.API.SetFault(east.Name, slowWrites(time.Minute))
		lists := func() int { return requestsOf(west, east.Name)["list endpointslices"] }
		before := lists()
		east.Start()
		sim.Wait(liveness.HeartbeatInterval - 500*time.Millisecond)
		if got := lists() - before; got != 0 {
			t.Errorf("it listed the slices of a member %d times first", got)
		}
		sim.Wait(time.Second)
		if got := lists() - before; got != 1 {
			t.Errorf("it listed the slices of a member %d times, want once", got)
		}
	})
}

// slowWrites is a fault: the API server delays each update of a slice.
func slowWrites(by time.Duration) apiserver.Fault {
	return func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
		if req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/endpointslices/") {
			return apiserver.Slow(by)(req, serve)
		}
		return serve(req)
	}
}

// TestFormerLeader: a leader that is stopped for longer than its lease writes nothing when it resumes.
func TestFormerLeader(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		east.Stop()
		first := east.StartReplica(replica("first"))
		sim.Wait(10 * time.Second)
		east.StartReplica(replica("second"))
		west.Export("web:10.61.0.1")
		sim.Wait(10 * time.Second)
		first.Freeze()
		sim.Wait(20 * time.Second)
		west.SetEndpoints("web", "10.61.0.2")
		here := map[string]string{"web": "west/10.61.0.2 -> VIP"}
		expect(t, east, here)
		before := len(first.Writes())
		first.Thaw()
		sim.Wait(20 * time.Second)
		expect(t, east, here)
		if writes := first.Writes()[before:]; len(writes) > 0 {
			t.Errorf("the former leader wrote %v", writes)
		}
	})
}

// replica makes a process take part in leader election.
func replica(identity string) func(*controller.Options) {
	return func(options *controller.Options) { options.LeaderElection, options.Identity = true, identity }
}
