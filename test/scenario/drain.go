// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// three are the clusters of fault scenarios: west and north export, and east only imports.
var three = []string{"east", "west", "north"}

// West and north export web and db; west alone exports solo and lone. Db and lone are headless.
var (
	healthy = View{
		"web":  "north/10.66.0.1 west/10.65.0.1 -> VIP",
		"solo": "west/10.65.0.2 -> VIP",
		"db":   "north/10.66.0.3 west/10.65.0.3 -> 10.65.0.3 10.66.0.3",
		"lone": "west/10.65.0.4 -> 10.65.0.4",
	}
	// westDemoted is the view while west is demoted: web and db have other endpoints, solo and lone do not.
	westDemoted = healthy.With(
		"web", "north/10.66.0.1 west/10.65.0.1~ -> VIP",
		"db", "north/10.66.0.3 west/10.65.0.3~ -> 10.66.0.3",
	)
	westGone = View{"web": "north/10.66.0.1 -> VIP", "solo": gone, "db": "north/10.66.0.3 -> 10.66.0.3", "lone": gone}
	nothing  = View{"web": gone, "solo": gone, "db": gone, "lone": gone}
)

// exportAll creates or restores the exports of a cluster.
func exportAll(c *Cluster) {
	switch c.Name {
	case "west":
		c.Export("web:10.65.0.1", "solo:10.65.0.2", "db!10.65.0.3", "lone!10.65.0.4")
	case "north":
		c.Export("web:10.66.0.1", "db!10.66.0.3")
	}
}

// fault runs a scenario on healthy clusters. After it, the clusters must be at rest.
func fault(run func(s *Set, east, west, north *Cluster)) func(*Set) {
	return func(s *Set) {
		for _, c := range s.clusters {
			exportAll(c)
		}
		for _, p := range s.Pairs() {
			s.Judged(p, "Alive")
		}
		s.Expect(healthy)
		run(s, s.Cluster("east"), s.Cluster("west"), s.Cluster("north"))
		s.Quiet()
	}
}

// drains: an administrator drains a healthy member, and undoes it. Services without endpoints in other clusters keep
// their endpoints.
func drains(s *Set, east, west, north *Cluster) {
	p, other := Pair{east, west}, Pair{east, north}
	s.Annotate(p, memberstate.AnnotationDrain, "true")
	s.Except(east, westDemoted, healthy)
	s.Judged(p, "Alive")
	// A drained member is not stale: its changes are applied.
	west.SetEndpoints("lone", "10.65.0.9")
	changed := []string{"lone", "west/10.65.0.9 -> 10.65.0.9"}
	s.Except(east, westDemoted.With(changed...), healthy.With(changed...))
	s.Annotate(other, memberstate.AnnotationDrain, "true")
	s.Expect(healthy.With(changed...))
	s.Annotate(other, memberstate.AnnotationDrain, "")
	s.Except(east, westDemoted.With(changed...), healthy.With(changed...))
	s.Annotate(p, memberstate.AnnotationDrain, "false") // not drained, like any value other than "true"
	s.Expect(healthy.With(changed...))

	// A cluster that is drained locally: clients of all clusters leave it.
	home := func(value string) {
		west.Put(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, annotations: {%s: %s}}}",
			system, memberstate.AnnotationDrain, value))
	}
	home(`"true"`)
	s.Expect(westDemoted.With(changed...))
	// The next leader knows that before it reads the heartbeat.
	s.Becomes("Lease of west", "true", func() (string, error) {
		return east.Lease(memberstate.LeasePrefix + "west").Annotations[memberstate.DrainsAnnotation], nil
	})
	s.cut(p)
	east.Restart()
	s.Holds(12*time.Second, westDemoted.With(changed...), east)
	s.restore(p)
	home("null")
	s.Expect(healthy.With(changed...))
}

// cut cuts both directions between the clusters of each pair, and resets the connections.
func (s *Set) cut(pairs ...Pair) {
	for _, p := range pairs {
		s.Cut(p.Reader.Name, p.Source.Name, network.Both)
		s.Reset(p.Reader.Name, p.Source.Name)
	}
}

func (s *Set) restore(pairs ...Pair) {
	for _, p := range pairs {
		s.Restore(p.Reader.Name, p.Source.Name)
	}
}

// silence cuts the pairs, and waits until the sources are stale.
func (s *Set) silence(pairs ...Pair) {
	s.cut(pairs...)
	for _, p := range pairs {
		s.Judged(p, "NoHeartbeat")
	}
}

// hear undoes silence, and waits until the sources are fresh.
func (s *Set) hear(pairs ...Pair) {
	s.restore(pairs...)
	for _, p := range pairs {
		s.Judged(p, "Alive")
	}
}
