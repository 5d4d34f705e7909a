// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

var two = []string{"east", "west"}

// Common texts of the service web in a View.
const (
	ofEast = "east/10.64.0.10 -> VIP"
	ofWest = "west/10.65.0.10 -> VIP"
	ofBoth = "east/10.64.0.10 west/10.65.0.10 -> VIP"
)

// of runs a scenario with two clusters.
func of(run func(s *Set, east, west *Cluster)) func(*Set) {
	return func(s *Set) { run(s, s.clusters[0], s.clusters[1]) }
}

func web(text string) View { return View{"web": text} }

// noService: an export without a Service keeps its import and the IP. The export of an ExternalName Service contributes nothing.
func noService(s *Set, east, west *Cluster) {
	const invalid = " [Conflict=NoConflicts Ready=Failed Valid=NoService]"
	east.PutExport("web", "{}")
	s.Expect(web(gone+invalid), east)
	s.Expect(web(gone), west)
	east.Serve("web:10.64.0.10")
	s.Expect(web(ofEast))
	ips := east.IPs("web")
	east.DeleteService("web")
	s.Expect(web("-> VIP (Pending)"+invalid), east)
	s.Expect(web("-> VIP (Pending)"), west)
	east.Serve("web:10.64.0.11")
	s.Expect(web("east/10.64.0.11 -> VIP"))
	east.IPs("web", ips...)
	east.DeleteService("web")
	east.PutService("web", "{type: ExternalName, externalName: example.com}")
	s.Expect(web(gone+" [Conflict=NoConflicts Ready=Failed Valid=InvalidServiceType]"), east)
	s.Expect(web(gone), west)
}

// conflict: both clusters report the conflict to the exporters. The older export decides, and after its withdrawal the
// other one. Clients always get an answer.
func conflict(s *Set, east, west *Cluster) {
	east.Export("web!10.64.0.10")
	s.Expect(web("east/10.64.0.10 -> 10.64.0.10"))
	west.Export("web:10.65.0.10")
	const headless, conflict = "east/10.64.0.10 west/10.65.0.10 -> 10.64.0.10 10.65.0.10", " [Conflict=TypeConflict Ready=Ready Valid=Valid]"
	s.Expect(web(headless + conflict))
	watches := map[*Cluster]watch.Interface{}
	for _, c := range s.clusters {
		watches[c] = c.watchImports("web")
	}
	east.Withdraw("web")
	s.Expect(web(ofWest))
	for c, watched := range watches {
		for ready := false; !ready; {
			event := <-watched.ResultChan()
			imported, ok := event.Object.(*v1beta1.ServiceImport)
			if !ok || event.Type != watch.Modified {
				s.Fatalf("%s: the import is %s: %v", c.Name, event.Type, event.Object)
			}
			ready = imported.Spec.Type == v1beta1.ClusterSetIP
			if ready && len(imported.Spec.IPs) == 0 {
				s.Errorf("%s: the import has type ClusterSetIP and no IP", c.Name)
			}
		}
	}
}

// deniedNamespace: services of a denied namespace are neither exported nor imported.
func deniedNamespace(s *Set, east, west *Cluster) {
	east.Options.DeniedNamespaces = []string{s.namespace[:3] + "*"}
	east.Restart()
	east.Export("web:10.64.0.10")
	s.Expect(web(gone+" [Conflict=NoConflicts Ready=Failed Valid=NamespaceDenied]"), east)
	west.Export("web:10.65.0.10")
	s.Expect(web(ofWest), west)
	s.Expect(web(gone+" [Conflict=NoConflicts Ready=Failed Valid=NamespaceDenied]"), east)
}

// dualStack exports a dual-stack Service to a single-stack cluster.
func dualStack(s *Set) {
	east, dual := s.clusters[0], s.clusters[1]
	dual.PutService("web", "{ipFamilyPolicy: RequireDualStack, ports: [{name: http, port: 80}]}")
	dual.SetEndpoints("web", "10.65.0.10")
	dual.SetEndpoints("web", "fd00::10")
	dual.PutExport("web", "{}")
	s.Eventually("two families",
		func() error { return dual.familiesDiffer("web", corev1.IPv4Protocol, corev1.IPv6Protocol) })
	dual.IPs("web")
	s.Expect(web("dual/10.65.0.10 dual/fd00::10 -> VIP"), dual)
	s.Eventually("one family", func() error { return east.familiesDiffer("web", corev1.IPv4Protocol) })
	// When the Service becomes single-stack, the derived Service does, too.
	dual.PutService("web", "{ipFamilyPolicy: SingleStack, ports: [{name: http, port: 80}]}")
	s.Eventually("one family", func() error { return dual.familiesDiffer("web", corev1.IPv4Protocol) })
	dual.IPs("web")
}

func (c *Cluster) familiesDiffer(service string, want ...corev1.IPFamily) error {
	imported, err := c.importOf(service)
	if err == nil && (!slices.Equal(imported.Spec.IPFamilies, want) || len(imported.Spec.IPs) != len(want)) {
		err = fmt.Errorf("it has %v", imported.Spec.IPs)
	}
	return err
}
