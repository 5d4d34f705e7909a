// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Ask sets an annotation on all exports of a service in all clusters; an empty annotation removes all settings.
func (s *Set) Ask(service, annotation, value string) {
	for _, c := range s.clusters {
		_, err := c.exportOf(service)
		s.must(ignoreNotFound(err))
		if err == nil {
			spec := "{exportedAnnotations: null}"
			if annotation != "" {
				spec = fmt.Sprintf("{exportedAnnotations: {%q: %q}}", annotation, value)
			}
			c.PutExport(service, spec)
		}
	}
}

// traffic: endpoints are used by tiers and weights, the same ones in all clusters, and SRV answers of a headless import
// list all tiers and exact shares.
func traffic(s *Set, east, west, north *Cluster) {
	s.ExpectSRV("db", "0 100 10-65-0-3.west, 0 100 10-66-0-3.north")
	for _, service := range []string{"web", "db"} {
		s.Ask(service, export.AnnotationPrefer, "north > west")
	}
	ordered := healthy.With(
		"web", "north/10.66.0.1 west/10.65.0.1~ -> VIP",
		"db", "north/10.66.0.3 west/10.65.0.3~ -> 10.66.0.3",
	)
	s.Expect(ordered)
	s.ExpectSRV("db", "0 100 10-66-0-3.north, 2 100 10-65-0-3.west")
	north.SetEndpoints("db")
	s.Expect(ordered.With("db", "west/10.65.0.3 -> 10.65.0.3"))
	north.SetEndpoints("db", "10.66.0.3")
	s.Expect(ordered)
	s.rests(east)

	// Endpoints of a stale member come last, and are not listed.
	p := Pair{east, north}
	s.silence(p)
	s.Except(east, healthy.With(
		"web", "north/10.66.0.1~ west/10.65.0.1 -> VIP",
		"db", "north/10.66.0.3~ west/10.65.0.3 -> 10.65.0.3",
	), ordered)
	s.ExpectSRV("db", "2 100 10-65-0-3.west", east)
	s.hear(p)
	s.Expect(ordered)
	s.ExpectSRV("db", "0 100 10-66-0-3.north, 2 100 10-65-0-3.west")

	// local is a different cluster in each cluster.
	s.Ask("web", export.AnnotationPrefer, "local > north > west")
	s.Ask("db", "", "")
	s.Expect(healthy.With("web", ordered["web"]), east)
	s.Expect(healthy, west, north) // hints keep traffic in the local cluster, which is first

	// Shares are shares of all endpoints. Endpoints that a weight leaves out come after their tier.
	for _, service := range []string{"web", "db"} {
		west.SetEndpoints(service, "10.65.0.3", "10.65.0.4")
		north.SetEndpoints(service, "10.66.0.3", "10.66.0.4", "10.66.0.5")
		s.Ask(service, "", "")
		s.Ask(service, export.AnnotationWeights, "west=20")
		s.ExpectShares(service, Shares{"west": 1, "north": 3})
	}
	s.ExpectSRV("db", "0 13824 10-66-0-3.north, 0 13824 10-66-0-4.north, 0 13824 10-66-0-5.north, "+
		"0 5120 10-65-0-3.west, 0 5120 10-65-0-4.west")
	s.rests(east)
	s.silence(p)
	s.ExpectShares("web", Shares{"west": 2}, east)
	s.hear(p)
	s.ExpectShares("web", Shares{"west": 1, "north": 3})
	exportAll(west)
	exportAll(north)
	s.Ask("web", "", "")
	s.Ask("db", "", "")
	s.Expect(healthy)
	s.ExpectSRV("db", "0 100 10-65-0-3.west, 0 100 10-66-0-3.north")
}

// allowedClusters: endpoints outside of the allowed clusters are never used or answered, whatever happens inside.
func allowedClusters(s *Set, east, west, north *Cluster) {
	for c, is := range map[*Cluster]string{east: "eu", north: "eu", west: "us"} {
		c.Describe("region", is)
	}
	for _, service := range []string{"web", "db", "lone"} {
		s.Ask(service, export.AnnotationAllowedClusters, "same(region)")
	}
	ofNorth := healthy.With("web", "north/10.66.0.1 west/10.65.0.1- -> VIP", "db", "north/10.66.0.3 west/10.65.0.3- -> 10.66.0.3",
		"lone", "west/10.65.0.4- -> NXDOMAIN")
	ofWest := healthy.With("web", "north/10.66.0.1- west/10.65.0.1 -> VIP", "db", "north/10.66.0.3- west/10.65.0.3 -> 10.65.0.3")
	s.Except(west, ofWest, ofNorth)
	north.SetEndpoints("web")
	north.SetEndpoints("db")
	empty := ofNorth.With("web", "west/10.65.0.1- -> VIP", "db", "west/10.65.0.3- -> NXDOMAIN")
	s.Expect(empty, east, north)
	east.Restart()
	s.Holds(10*time.Second, empty, east)
	exportAll(north) // without settings: west's exports are older
	s.Ask("web", export.AnnotationAllowedClusters, "same(region)")
	s.Ask("db", export.AnnotationAllowedClusters, "same(region)")
	s.Except(west, ofWest, ofNorth)

	// A stale member inside is used, and nothing outside, even by a controller that starts in the meantime and knows the regions.
	pairs := []Pair{{east, north}, {east, west}}
	s.cut(pairs...)
	for _, each := range pairs {
		s.LeaseSays(each, "stale") // before that, the next leader could prefer one of them
	}
	s.Expect(ofNorth, east)
	east.Restart()
	s.Holds(90*time.Second, ofNorth, east)
	s.hear(pairs...)
	s.Except(west, ofWest, ofNorth)

	// The regions of clusters change.
	west.Describe("region", "eu")
	s.Expect(healthy)
	north.Describe("region", "us")
	s.Except(north, ofNorth, ofWest)

	for _, service := range []string{"web", "db", "lone"} {
		s.Ask(service, "", "")
	}
	s.Expect(healthy)
}

// allowedClustersLifted: while allowed clusters exclude a member, its copies stay. If the restriction is removed while the
// member is stale or quarantined, its endpoints are used again, even by a new controller.
func allowedClustersLifted(s *Set, east, west *Cluster) {
	p := Pair{east, west}
	east.Export("web:") // the older export, which decides
	s.Pass(2 * time.Second)
	for _, lose := range []func(){
		func() {
			s.silence(p)
			east.Restart()
		},
		func() {
			east.Stop()
			west.Withdraw("web") // its only export
			east.Start()
			s.Judged(p, "ExportsLost")
		},
	} {
		west.Export("web:10.65.0.10")
		s.Ask("web", export.AnnotationAllowedClusters, "local")
		s.Except(east, web("west/10.65.0.10- -> VIP"), web(ofWest))
		s.Quiet()
		lose()
		s.Holds(15*time.Second, web("west/10.65.0.10- -> VIP"), east)
		s.Ask("web", export.AnnotationAllowedClusters, "*")
		s.ExpectShares("web", Shares{"west": 1}, east)
		s.restore(p)
		s.Quiet()
	}
}

// Shares are the numbers of ready endpoints of an import, by cluster.
type Shares map[string]int

// ExpectShares waits until clusters, or all, have these shares, with the same ready endpoints in all of them.
func (s *Set) ExpectShares(service string, want Shares, in ...*Cluster) {
	in = s.or(in)
	s.Eventually("shares of "+service, func() error {
		var first []string
		for i, c := range in {
			got := Shares{}
			var ready []string
			for _, slice := range c.Slices(service) {
				for _, endpoint := range slice.Endpoints {
					if *endpoint.Conditions.Ready {
						got[slice.Labels[export.LabelSourceCluster]]++
						ready = append(ready, endpoint.Addresses[0])
					}
				}
			}
			slices.Sort(ready)
			if !maps.Equal(got, want) {
				return fmt.Errorf("%s has %v, want %v", c.Name, got, want)
			}
			if i == 0 {
				first = ready
			} else if !slices.Equal(ready, first) {
				return fmt.Errorf("%s has %v ready, %s %v", c.Name, ready, in[0].Name, first)
			}
		}
		return nil
	})
}

// ExpectSRV waits until DNS in clusters, or all, answers a query for a service with these SRV records.
func (s *Set) ExpectSRV(service, want string, in ...*Cluster) {
	for _, c := range s.or(in) {
		s.Becomes("SRV records of "+service+" in "+c.Name, want, func() (string, error) { return c.DNS.SRV(service, s.namespace), nil })
	}
}
