// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// lists counts the lists of EndpointSlices that a cluster asked another for.
func lists(from, to *sim.Cluster) int { return requestsOf(from, to.Name)["list endpointslices"] }

// TestResumedWatches breaks the watches of a member while one of its services changes every second. They are resumed
// without a list, unless the API server was away or has forgotten what was missed, or its etcd is restored from a backup.
func TestResumedWatches(t *testing.T) {
	type scene struct {
		set        *sim.ClusterSet
		east, west *sim.Cluster
		// change changes the service once a second, for so many seconds.
		change func(seconds int)
	}
	for _, test := range []struct {
		name  string
		lists int
		run   func(scene)
	}{
		{"one of several API servers restarts", 0, func(s scene) { s.west.API.Restart() }},
		{"several API servers restart one after another", 0, func(s scene) {
			for range 5 {
				s.west.API.Restart()
				s.change(7)
			}
		}},
		{"the API server hangs for a minute", 1, func(s scene) {
			s.west.FreezeAPI()
			sim.Wait(time.Minute)
			s.west.StartAPI()
		}},
		{"the only API server is away for a minute", 1, func(s scene) {
			sim.Wait(10 * time.Second) // heartbeats follow the last change
			s.west.StopAPI()
			sim.Wait(time.Minute)
			s.west.StartAPI()
		}},
		{"the connection is reset", 0, func(s scene) { s.set.Network.Reset("east", "west") }},
		{"the reader is cut off for three minutes", 1, func(s scene) {
			s.set.Network.Cut("east", "west", network.Both)
			s.change(180)
			s.set.Network.Restore("east", "west")
		}},
		{"the controller restarts, too", 0, func(s scene) {
			s.west.StopController()
			s.west.API.Restart()
			s.west.StartController()
		}},
		{"what was missed is compacted", 1, func(s scene) {
			s.set.Network.Cut("east", "west", network.Both)
			s.change(30)
			s.west.API.Compact()
			s.set.Network.Restore("east", "west")
		}},
		{"a restored etcd", 1, func(s scene) {
			backup := s.west.API.Backup()
			s.change(20)
			s.west.RestoreAPI(backup)
		}},
		{"a restored etcd whose revisions continue, and that went further meanwhile", 1, func(s scene) {
			backup := s.west.API.Backup()
			s.change(20)
			s.set.Network.Cut("east", "west", network.Both)
			s.west.API.RestoreWithBump(backup)
			s.change(90)
			s.set.Network.Restore("east", "west")
		}},
		{"an etcd that is restored to a second ago", 1, func(s scene) {
			backup := s.west.API.Backup()
			s.west.Withdraw("other") // which the backup does not know
			sim.Wait(time.Second)
			s.west.API.Restore(backup)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				s := scene{set: set, east: set.Cluster("east"), west: set.Cluster("west")}
				s.west.Serve("web", true, "10.65.0.1")
				s.west.Serve("other", true, "10.65.0.2")
				s.west.Export("web")
				s.west.Export("other")
				number := 0
				s.change = func(seconds int) {
					for range seconds {
						number++
						s.west.SetEndpoints("web", fmt.Sprintf("10.65.1.%d", number%200))
						sim.Wait(time.Second)
					}
				}
				s.change(20)
				before := lists(s.west, s.east)
				test.run(s)
				sim.Wait(30 * time.Second)
				if got := lists(s.west, s.east) - before; got != test.lists {
					t.Errorf("east listed the slices of west %d times, want %d", got, test.lists)
				}
				expect(t, s.east, map[string]string{"other": "west/10.65.0.2 -> 10.65.0.2"})
				s.change(10)
				address := fmt.Sprintf("10.65.1.%d", number%200)
				expect(t, s.east, map[string]string{"web": "west/" + address + " -> " + address})
			})
		})
	}
}

// TestWatchesFail: an API server fails each watch of EndpointSlices, and answers all else. What changes meanwhile is
// listed, with backoff.
func TestWatchesFail(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		west.Serve("web", true, "10.65.0.1")
		west.Export("web")
		sim.Wait(20 * time.Second)
		before := lists(west, east)
		fail := apiserver.Refusal(apierrors.NewInternalError(errors.New("simulated")))
		west.API.SetFault("east", func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/endpointslices") && req.URL.Query().Get("watch") != "" {
				return fail(req, serve)
			}
			return serve(req)
		})
		west.SetEndpoints("web", "10.65.0.2")
		sim.Wait(3 * time.Minute)
		expect(t, east, map[string]string{"web": "west/10.65.0.2 -> 10.65.0.2"})
		sim.Wait(17 * time.Minute)
		if got := lists(west, east) - before; got > 100 {
			t.Errorf("east listed the slices of west %d times in 20 minutes", got)
		}
		west.API.SetFault("east", nil)
		sim.Wait(2 * time.Minute)
		before = lists(west, east)
		west.SetEndpoints("web", "10.65.0.3")
		expect(t, east, map[string]string{"web": "west/10.65.0.3 -> 10.65.0.3"})
		if got := lists(west, east) - before; got > 0 {
			t.Errorf("east listed the slices of west %d times once watches work", got)
		}
	})
}
