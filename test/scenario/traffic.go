// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

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
