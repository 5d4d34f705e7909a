// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Ask has all exports of a service in all clusters ask for this, by annotation; empty for nothing.
func (s *Set) Ask(service, annotation, value string) {
	s.Helper()
	for _, c := range s.clusters {
		_, err := c.MCS.MulticlusterV1beta1().ServiceExports(s.namespace).Get(s.Context(), service, metav1.GetOptions{})
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

// tiers: the second tier is used while the first has no ready endpoint, also if it is silent.
func tiers(s *Set, east, west, north *Cluster) {
	for _, service := range []string{"web", "db"} {
		s.Ask(service, export.AnnotationPrefer, "north > west")
	}
	ordered := healthy.With(
		"web", "north/10.66.0.1 west/10.65.0.1~ -> VIP",
		"db", "north/10.66.0.3 west/10.65.0.3~ -> 10.66.0.3",
	)
	s.Expect(ordered)
	north.SetEndpoints("db")
	s.Expect(ordered.With("db", "west/10.65.0.3 -> 10.65.0.3"))
	north.SetEndpoints("db", "10.66.0.3")
	s.Expect(ordered)
	east.Restart()
	s.Expect(ordered)

	// What is silent comes after all that is not.
	p := Pair{east, north}
	s.cut(p)
	s.Judged(p, "Silent")
	s.Except(east, healthy.With(
		"web", "north/10.66.0.1~ west/10.65.0.1 -> VIP",
		"db", "north/10.66.0.3~ west/10.65.0.3 -> 10.65.0.3",
	), ordered)
	s.restore(p)
	s.Judged(p, "Heard")
	s.Expect(ordered)

	// The order is seen from each cluster.
	s.Ask("web", export.AnnotationPrefer, "local > north > west")
	s.Ask("db", "", "")
	s.Expect(healthy.With("web", ordered["web"]), east)
	s.Expect(healthy, west, north) // hints put each first at home, and the other is the next
	s.Ask("web", "", "")
	s.Expect(healthy)
}

// border: what is outside is not used and not answered, whatever happens inside.
func border(s *Set, east, west, north *Cluster) {
	for _, service := range []string{"web", "db", "lone"} {
		s.Ask(service, export.AnnotationWithin, "east; north")
	}
	limited := healthy.With(
		"web", "north/10.66.0.1 -> VIP", "db", "north/10.66.0.3 -> 10.66.0.3", "lone", "-> NXDOMAIN")
	// West is always inside for itself.
	s.Except(west, healthy, limited)
	north.SetEndpoints("web")
	north.SetEndpoints("db")
	empty := limited.With("web", "-> VIP", "db", "-> NXDOMAIN")
	s.Expect(empty, east, north)
	east.Restart()
	s.Holds(10*time.Second, empty, east)
	exportAll(north) // exports ask for nothing: those of west are older
	s.Ask("web", export.AnnotationWithin, "east; north")
	s.Ask("db", export.AnnotationWithin, "east; north")
	s.Except(west, healthy, limited)

	// What is silent inside is used, and nothing outside, also by a controller that starts meanwhile.
	p := Pair{east, north}
	s.cut(p, Pair{east, west})
	s.Judged(p, "AllMembersSilent")
	east.Restart()
	s.Holds(30*time.Second, limited, east)
	s.restore(p, Pair{east, west})
	s.Judged(p, "Heard")
	s.Except(west, healthy, limited)

	// A border that is not valid admits the local cluster alone.
	s.Ask("web", export.AnnotationWithin, "one two")
	s.Expect(limited.With("web", "-> VIP"), east)
	for _, service := range []string{"web", "db", "lone"} {
		s.Ask(service, "", "")
	}
	s.Expect(healthy)
}
