// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// ExpectImports waits until exactly these services are imported.
func (c *Cluster) ExpectImports(want string) {
	c.set.Becomes("imports in "+c.Name, want, func() (string, error) {
		list, err := c.imports.List(c.set.Context(), metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		var names []string
		for _, each := range list.Items {
			names = append(names, each.Name)
		}
		slices.Sort(names)
		return strings.Join(names, " "), nil
	})
}

// overLimit waits until the metric of a limit of west has this value; 1 means exceeded.
func (c *Cluster) overLimit(limit limits.Limit, over float64) {
	c.ExpectMetric(over, "clusterset_controller_member_over_limit", "member", "west", "limit", string(limit))
}

// overItsLimits: imported services stay and follow their changes. Services beyond a limit are left out and reported,
// and imported by the next list once there is room.
func overItsLimits(s *Set, east, west *Cluster) {
	east.Options.MemberLimits = limits.Limits{Services: 3, Endpoints: 5, SliceBytes: 16 << 10}
	east.Restart()
	west.Export("c:10.65.9.1", "d:10.65.9.1", "e:10.65.9.1")
	east.ExpectImports("c d e")
	west.Export("a:10.65.9.1")
	east.overLimit(limits.Services, 1)
	west.SetEndpoints("c", "10.65.8.1", "10.65.8.2")
	s.Expect(View{"c": "west/10.65.8.1 west/10.65.8.2 -> VIP"})

	// After a restart the same services are imported, although others sort before them.
	east.Restart()
	east.overLimit(limits.Services, 1)
	east.ExpectImports("c d e")
	west.Withdraw("d")
	east.ExpectImports("c e")
	east.Restart() // lists west
	east.ExpectImports("a c e")
	east.overLimit(limits.Services, 0)

	// A slice is too large: the service stays unchanged.
	west.PutExport("c", "{exportedAnnotations: {note: "+strings.Repeat("x", 20<<10)+"}}")
	east.overLimit(limits.SliceBytes, 1)
	west.SetEndpoints("c", "10.65.8.5")
	s.Expect(View{"c": "west/10.65.8.5 -> VIP"}, west)
	s.Expect(View{"c": "west/10.65.8.1 west/10.65.8.2 -> VIP"}, east)
	west.PutExport("c", "{exportedAnnotations: {note: short}}")
	s.Expect(View{"c": "west/10.65.8.5 -> VIP"})
	east.Restart()
	east.overLimit(limits.SliceBytes, 0)

	// Endpoints that stay because their slice is broken count, too.
	west.SetEndpoints("a", "10.65.9.1", "10.65.9.2", "10.65.9.3")
	s.Expect(View{"a": "west/10.65.9.1 west/10.65.9.2 west/10.65.9.3 -> VIP"})
	west.Stop()
	write := func(service, patch string) {
		west.Patch(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), west.Slices(service)[0].Name, patch)
	}
	write("a", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}},"endpoints":[]}`, export.AnnotationSnapshot))
	east.problems("west", export.ReasonBadSnapshot, 1)
	write("e", `{"endpoints":[{"addresses":["10.65.9.4"]},{"addresses":["10.65.9.5"]}]}`)
	east.overLimit(limits.Endpoints, 1)
	s.Expect(View{"e": "west/10.65.9.1 -> VIP"}, east)
	west.Start()
	west.ExpectMetric(1, "clusterset_controller_leader")
	east.Restart()
	east.overLimit(limits.Endpoints, 0)
}

// quiet: neither reconciling again nor a restart writes anything but Leases. Objects of many new services are created
// once, although caches lag behind.
func quiet(s *Set, east, west *Cluster) {
	const count = 40
	for _, c := range s.clusters {
		c.Stop()
	}
	for i := range count {
		east.Export(fmt.Sprintf("web-%d%s10.64.1.%d", i, []string{":", "!", "!"}[i%3], i+1))
	}
	for _, c := range s.clusters {
		c.Start()
	}
	s.Expect(View{"web-1": "east/10.64.1.2 -> 10.64.1.2", "web-39": "east/10.64.1.40 -> VIP"})
	s.Quiet()
	for _, c := range s.clusters {
		if asked := c.asked(); asked["POST endpointslices"] != count || asked[conflicts] > 0 {
			s.Errorf("%s: for %d slices, these were asked for: %v", c.Name, count, asked)
		}
	}
	west.Export("web-0:10.65.1.1", "web-2:10.65.1.2")
	s.Expect(View{"web-0": "east/10.64.1.1 west/10.65.1.1 -> VIP"})
	s.rests(east)
}
