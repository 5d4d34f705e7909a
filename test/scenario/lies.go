// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryv1client "k8s.io/client-go/kubernetes/typed/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// lies: a member publishes slices that its controller did not write: an unknown version of the snapshot, an address of a
// metadata service, and a service in a namespace of the system. They affect only its own exports, and are reported.
func lies(s *Set, east, west, _ *Cluster) {
	west.Stop()
	solo, lone := west.Slices("solo")[0], west.Slices("lone")[0]
	slices := discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	west.Patch(slices, solo.Name, fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:"{}"}},"endpoints":[{"addresses":["10.65.0.9"]}]}`,
		export.AnnotationSnapshot, export.AnnotationSnapshotPrefix+"v99"))
	west.Patch(slices, lone.Name, `{"endpoints":[{"addresses":["10.65.0.9"]},{"addresses":["100.100.100.200"]}]}`)
	solo.ObjectMeta = metav1.ObjectMeta{Name: solo.Name, Labels: solo.Labels, Annotations: solo.Annotations}
	system := func(c *Cluster) discoveryv1client.EndpointSliceInterface {
		return c.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem)
	}
	_, err := system(west).Create(s.Context(), &solo, metav1.CreateOptions{})
	s.must(err)
	s.Expect(View{"solo": healthy["solo"], "lone": "west/10.65.0.9 -> 10.65.0.9"}, east)
	east.problems("west", export.ReasonBadSnapshot, 1)
	east.problems("west", export.ReasonBadAddress, 1)
	list, err := system(east).List(s.Context(), metav1.ListOptions{LabelSelector: export.LabelService})
	s.must(err)
	if len(list.Items) > 0 {
		s.Errorf("east has slice %s in the namespace of the system", list.Items[0].Name)
	}
	s.must(system(west).Delete(s.Context(), solo.Name, metav1.DeleteOptions{}))
	west.Start() // which corrects its slices
	s.Expect(healthy)
	east.problems("west", export.ReasonBadSnapshot, 0)
	east.problems("west", export.ReasonBadAddress, 0)
}

// problems waits for the number of problems that the cluster counts in another cluster's exports.
func (c *Cluster) problems(of string, reason export.Reason, want float64) {
	c.set.Becomes("problems of the reason "+string(reason), fmt.Sprint(want), func() (string, error) {
		got, _ := c.Metric("clusterset_controller_export_problems", "member", of, "reason", string(reason))
		return fmt.Sprint(got), nil
	})
}

// ownAddresses: addresses of nodes and of the API server of the local cluster are left out of imports, and the other
// endpoints of the service stay.
func ownAddresses(s *Set, east, west *Cluster) {
	west.Export("web:10.65.0.10,192.0.2.7,203.0.113.2")
	const all = "west/10.65.0.10 west/192.0.2.7 west/203.0.113.2 -> VIP"
	s.Expect(web(all))
	east.SetNode("one", "192.0.2.7", true)
	s.Except(east, web("west/10.65.0.10 west/203.0.113.2 -> VIP"), web(all))
	slices, other := east.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault), east.Slices("web")[0]
	other.ObjectMeta = metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{export.LabelKubernetesService: "kubernetes"}}
	other.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"203.0.113.2"}}}
	_, err := slices.Create(s.Context(), &other, metav1.CreateOptions{})
	s.must(err)
	s.Except(east, web(ofWest), web(all))
	s.must(slices.Delete(s.Context(), other.Name, metav1.DeleteOptions{}))
	s.Except(east, web("west/10.65.0.10 west/203.0.113.2 -> VIP"), web(all))
}

// confined: addresses outside of the CIDRs in a member's Secret are left out, and no others. Invalid CIDRs allow
// nothing.
func confined(s *Set, east, west, _ *Cluster) {
	p := Pair{east, west}
	s.Annotate(p, member.CIDRsAnnotation, "2001:db8::/32, 10.65.0.0/30")
	left := healthy.With("lone", "-> NXDOMAIN")
	s.Except(east, left, healthy)
	east.problems("west", export.ReasonForeignAddress, 1)
	s.Annotate(p, member.CIDRsAnnotation, ",")
	east.ExpectEvent(s.secretOf(p), memberstate.EventMemberCredentialInvalid)
	west.SetEndpoints("solo", "10.65.0.1")
	seen := healthy.With("solo", "west/10.65.0.1 -> VIP")
	s.Except(east, left.With("solo", seen["solo"]), seen)
	s.Annotate(p, member.CIDRsAnnotation, "10.65.0.0/16")
	s.Expect(seen)
}
