// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// three are the clusters of faults: west and north export, east looks on.
var three = []string{"east", "west", "north"}

// What west and north have in common is web and db; west alone has solo and lone. Db and lone are headless.
var (
	healthy = View{
		"web":  "north/10.66.0.1 west/10.65.0.1 -> VIP",
		"solo": "west/10.65.0.2 -> VIP",
		"db":   "north/10.66.0.3 west/10.65.0.3 -> 10.65.0.3 10.66.0.3",
		"lone": "west/10.65.0.4 -> 10.65.0.4",
	}
	// westDemoted: there is another for web and db, and none for the rest.
	westDemoted = healthy.With(
		"web", "north/10.66.0.1 west/10.65.0.1~ -> VIP",
		"db", "north/10.66.0.3 west/10.65.0.3~ -> 10.66.0.3",
	)
	westGone = View{"web": "north/10.66.0.1 -> VIP", "solo": gone, "db": "north/10.66.0.3 -> 10.66.0.3", "lone": gone}
	nothing  = View{"web": gone, "solo": gone, "db": gone, "lone": gone}
)

// exportAll makes or restores what a cluster exports.
func exportAll(c *Cluster) {
	switch c.Name {
	case "west":
		c.Export("web:10.65.0.1", "solo:10.65.0.2", "db!10.65.0.3", "lone!10.65.0.4")
	case "north":
		c.Export("web:10.66.0.1", "db!10.66.0.3")
	}
}

// A fault is what happens to healthy clusters, and after which they rest.
func fault(run func(s *Set, east, west, north *Cluster)) func(*Set) {
	return func(s *Set) {
		for _, c := range s.clusters {
			exportAll(c)
		}
		for _, p := range s.Pairs() {
			s.Judged(p, "Heard")
		}
		s.Expect(healthy)
		run(s, s.Cluster("east"), s.Cluster("west"), s.Cluster("north"))
		s.Quiet()
	}
}

// drains: an administrator takes the traffic away from a healthy member, and
// gives it back. If there is nowhere else to go, nothing is taken away.
func drains(s *Set, east, west, north *Cluster) {
	p, other := Pair{east, west}, Pair{east, north}
	s.Annotate(p, memberstate.AnnotationDrain, "true")
	s.Except(east, westDemoted, healthy)
	s.Judged(p, "Heard")
	// It is drained and not silent: what it says counts.
	west.SetEndpoints("lone", "10.65.0.9")
	changed := []string{"lone", "west/10.65.0.9 -> 10.65.0.9"}
	s.Except(east, westDemoted.With(changed...), healthy.With(changed...))
	s.Annotate(other, memberstate.AnnotationDrain, "true")
	s.Expect(healthy.With(changed...))
	s.Annotate(other, memberstate.AnnotationDrain, "")
	s.Except(east, westDemoted.With(changed...), healthy.With(changed...))
	s.Annotate(p, memberstate.AnnotationDrain, "false") // as any other value
	s.Expect(healthy.With(changed...))

	// A cluster that is drained at home: all clients leave it.
	home := func(value string) {
		west.Put(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, annotations: {%s: %s}}}",
			system, memberstate.AnnotationDrain, value))
	}
	home(`"true"`)
	s.Expect(westDemoted.With(changed...))
	home("null")
	s.Expect(healthy.With(changed...))
}

// cut lets nothing through between the clusters of a pair.
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

// silence cuts, and waits until the sources are silent.
func (s *Set) silence(pairs ...Pair) {
	s.cut(pairs...)
	for _, p := range pairs {
		s.Judged(p, "Silent")
	}
}

// hear undoes silence, and waits until the sources are heard.
func (s *Set) hear(pairs ...Pair) {
	s.restore(pairs...)
	for _, p := range pairs {
		s.Judged(p, "Heard")
	}
}
