// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// direct are the scenarios of the direct path to a member, by why a star has no such thing.
var direct = map[string]string{
	"a member has bad addresses":             "a gateway changes what the member's API server says",
	"a member has bad endpoints and ports":   "a gateway",
	"a member has bad snapshots":             "a gateway",
	"a member has slices of others":          "a gateway",
	"a member has a slice without measure":   "a gateway",
	"events of a member are broken":          "a gateway",
	"a Secret has no kubeconfig":             "the Secrets have none",
	"a Secret would read a file":             "the Secrets have no kubeconfig",
	"a Secret is empty":                      "a public key that is removed is not trusted anymore, unlike a kubeconfig",
	"a Secret is for another server":         "the Secrets have no kubeconfig",
	"a credential is rotated":                "the Secrets have no credential",
	"a member is given by a flag":            "flags name kubeconfigs",
	"another cluster has the id of a member": "the heartbeat of the member is written by hand, which no relay carries",
	"Leases are edited and deleted":          "the heartbeat of the member is written by hand",
	"a member is full of slices":             "slices are written by hand",
}

// starSize is how many clusters there are: those that a scenario does not have read those that it has.
var starSize = flag.Int("starsize", 0, "how many clusters a star has at least")

// TestScenariosInAStar runs the scenarios on clusters that reach each other through two relays alone.
func TestScenariosInAStar(t *testing.T) {
	for name := range direct {
		if !slices.ContainsFunc(scenario.All, func(s scenario.Scenario) bool { return s.Name == name }) {
			t.Errorf("there is no scenario %q", name)
		}
	}
	for _, each := range scenario.All {
		if direct[each.Name] != "" {
			continue
		}
		t.Run(each.Name, func(t *testing.T) {
			names := slices.Clone(each.Clusters)
			for len(names) < *starSize {
				names = append(names, fmt.Sprintf("c%d", len(names)))
			}
			sim.RunIdle(t, slices.Concat(names, sim.RelayNames), func(t *testing.T, set *sim.ClusterSet) {
				set.MakeStar(t, len(names))
				set.StartReaders(t, len(each.Clusters))
				each.On(t, starBed{bed: bed{set}, names: each.Clusters, withheld: map[string]map[string]bool{}})
			})
		})
	}
}

// A starBed is a bed whose clusters reach each other through relays alone.
type starBed struct {
	bed
	names []string
	// withheld are the sources that the relays withhold from a reader.
	withheld map[string]map[string]bool
}

func (b starBed) Platforms(t *testing.T, names []string) []scenario.Platform {
	platforms := b.bed.Platforms(t, names)[:len(names)]
	for i, c := range b.set.Clusters()[:len(names)] {
		platforms[i].Membership = func(string) map[string][]byte { return c.Membership() }
	}
	return platforms
}

// Cut has the relays withhold the mailbox of the source from the reader. A reader sends a source nothing.
func (b starBed) Cut(reader, source string, direction scenario.Direction) {
	if direction&scenario.FromServer == 0 {
		return
	}
	if b.withheld[reader] == nil {
		b.withheld[reader] = map[string]bool{}
	}
	b.withheld[reader][source] = true
	b.withhold(reader)
}

func (b starBed) Restore(reader, source string) {
	delete(b.withheld[reader], source)
	b.withhold(reader)
}

// Reset does nothing: watches end whenever what is withheld changes.
func (starBed) Reset(string, string) {}

func (b starBed) withhold(reader string) {
	var parts []string
	for source := range maps.Keys(b.withheld[reader]) {
		parts = append(parts, "/namespaces/"+b.set.Cluster(source).Mailbox()+"/")
	}
	fault := func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
		if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(req.URL.Path, part) }) {
			return apiserver.Hang(req, serve)
		}
		return serve(req)
	}
	for _, relay := range b.set.Relays() {
		relay.API.SetFault(reader, fault)
		if len(parts) == 0 {
			relay.API.SetFault(reader, nil)
		}
	}
}

// TestARelayFails asserts that no cluster is demoted if a relay hangs, and how late a change arrives that is made at that
// moment: members that were read there are read through the other relay.
func TestARelayFails(t *testing.T) {
	names := []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"}
	sim.RunStar(t, names, sim.RelayNames, func(t *testing.T, set *sim.ClusterSet) {
		address := func(i, version int) string { return fmt.Sprintf("10.%d.0.%d", 60+i, version) }
		for i, c := range set.Clusters() {
			c.Serve("web", false, address(i, 1))
			c.Export("web")
		}
		sim.Wait(time.Minute)
		// arrive changes all clusters, and returns how long it takes until all see all.
		arrive := func(version int, most time.Duration) time.Duration {
			began := time.Now()
			want := make([]string, len(names))
			for i, c := range set.Clusters() {
				c.SetEndpoints("web", address(i, version))
				want[i] = names[i] + "/" + address(i, version)
			}
			all := strings.Join(want, " ") + " -> VIP"
			for _, c := range set.Clusters() {
				for seen := c.See("web"); seen != all; seen = c.See("web") {
					if strings.Contains(seen, "~") {
						t.Fatalf("%s demotes: %s", c.Name, seen)
					}
					if time.Since(began) > most {
						t.Fatalf("after %s %s sees %s", most, c.Name, seen)
					}
					sim.Wait(20 * time.Millisecond)
				}
			}
			return time.Since(began)
		}
		usual := arrive(2, time.Second)
		for i, relay := range set.Relays() {
			relay.FreezeAPI()
			t.Logf("usually %s, as %s hangs %s", usual, relay.Name, arrive(3+i, 20*time.Second))
			sim.Wait(time.Minute)
			relay.StartAPI()
			sim.Wait(time.Minute)
		}
	})
}
