// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// sharing are shares of a cluster that is in memory.
type sharing struct {
	*shares
	cluster string
	imports map[types.NamespacedName]*v1beta1.ServiceImport
	derived map[types.NamespacedName]*corev1.Service
	refused bool // by the last reconcile
}

func newSharing(ips int, members ...string) *sharing {
	s := &sharing{
		cluster: "east",
		imports: map[types.NamespacedName]*v1beta1.ServiceImport{},
		derived: map[types.NamespacedName]*corev1.Service{},
	}
	s.restart(ips, members...)
	return s
}

// restart forgets all but what the cluster has.
func (s *sharing) restart(ips int, members ...string) {
	s.shares = &shares{IPs: limits.NewIPs(ips)}
	s.SetMembers(members)
	s.loadImports(s.cluster, func() []*v1beta1.ServiceImport {
		var all []*v1beta1.ServiceImport
		for _, each := range s.imports {
			all = append(all, each)
		}
		return all
	})
}

// reconcile writes what the exports of the clusters become, and returns "none",
// the reason of the import's Ready, or "IP" if the import has one.
func (s *sharing) reconcile(t *testing.T, name string, kind v1beta1.ServiceImportType, clusters ...string) string {
	t.Helper()
	service := types.NamespacedName{Namespace: "demo", Name: name}
	var result merge.Result
	for range 2 { // the second sees the IP
		result = s.reconcileOnce(service, kind, clusters...)
		s.imports[service], s.derived[service] = result.ServiceImport, result.DerivedService
		if result.ServiceImport == nil {
			delete(s.imports, service)
		}
		if result.DerivedService == nil {
			delete(s.derived, service)
			continue
		}
		result.DerivedService.Spec.ClusterIPs = []string{"10.96.0.7"}
	}
	switch {
	case result.ServiceImport == nil:
		return "none"
	case len(result.ServiceImport.Spec.IPs) > 0:
		return "IP"
	}
	return result.ServiceImport.Status.Conditions[0].Reason
}

// reconcileOnce merges what the clusters export, and writes nothing.
func (s *sharing) reconcileOnce(service types.NamespacedName, kind v1beta1.ServiceImportType,
	clusters ...string,
) merge.Result {
	var contributions []merge.Contribution
	for _, cluster := range clusters {
		contributions = append(contributions, merge.Contribution{View: &export.View{
			Cluster: cluster, Service: service,
			Spec: &export.Spec{
				Type: kind, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Created: time.Unix(1.7e9, 0),
				Ports: []export.Port{{Protocol: corev1.ProtocolTCP, Number: 80}},
			},
			Slices: []export.Slice{{Name: service.Name, AddressType: discoveryv1.AddressTypeIPv4}},
		}})
	}
	result, refused := s.mergeWithin(merge.Observed{
		Cluster: s.cluster, Service: service, ServiceImport: s.imports[service], DerivedService: s.derived[service],
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
	}, contributions)
	s.refused = refused
	return result
}

// TestClusterIPsOfOneMember: a member that exports 20,000 services leaves the ClusterIPs that other members and the
// cluster itself need. What exists stays, also over a restart.
func TestClusterIPsOfOneMember(t *testing.T) {
	const total = 256 // of a small range, so that the test is quick
	s := newSharing(total, "hostile", "honest")
	count := map[string]int{}
	for i := range 2000 {
		count[s.reconcile(t, fmt.Sprintf("x-%05d", i), v1beta1.ClusterSetIP, "hostile")]++
	}
	const most = total - 7*total/16
	if count["IP"] != most || count[merge.ReasonClusterIPLimit] != 2000-most {
		t.Errorf("got %v, want %d with an IP", count, most)
	}
	message := s.imports[types.NamespacedName{Namespace: "demo", Name: "x-01999"}].Status.Conditions[0].Message
	for _, want := range []string{"hostile", "256", "Withdraw"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message has no %q: %s", want, message)
		}
	}
	for i := range total {
		if got := s.reconcile(t, fmt.Sprint("headless-", i), v1beta1.Headless,
			"honest"); got != string(v1beta1.ServiceImportReasonReady) {
			t.Fatalf("headless service %d needs no IP: %s", i, got)
		}
	}
	for i := range total / 16 {
		if got := s.reconcile(t, fmt.Sprint("honest-", i), v1beta1.ClusterSetIP, "honest"); got != "IP" {
			t.Fatalf("service %d of another member: %s", i, got)
		}
	}
	for _, test := range []struct{ what, name, clusters, want string }{
		{"the cluster's own export", "own", "east", "IP"},
		{"a service that the cluster exports, too", "x-01998", "east hostile", "IP"},
		{"which it no longer exports", "x-01998", "hostile", "IP"},
		{"a service that another member exports, too", "x-01997", "honest hostile", merge.ReasonClusterIPLimit},
	} {
		if got := s.reconcile(t, test.name, v1beta1.ClusterSetIP, strings.Fields(test.clusters)...); got != test.want {
			t.Errorf("%s: %s, want %s", test.what, got, test.want)
		}
	}
	if got := s.reconcile(t, "headless-1", v1beta1.ClusterSetIP, "honest"); got != merge.ReasonClusterIPLimit {
		t.Errorf("a headless service that becomes one with an IP: %s", got)
	}

	// A restart with a smaller limit takes nothing away.
	s.restart(16, "hostile", "honest")
	for _, i := range []int{1999, most - 1, most, 0} {
		want := "IP"
		if i >= most {
			want = merge.ReasonClusterIPLimit
		}
		if got := s.reconcile(t, fmt.Sprintf("x-%05d", i), v1beta1.ClusterSetIP, "hostile"); got != want {
			t.Errorf("x-%05d after a restart: %s, want %s", i, got, want)
		}
	}
}

// TestDerivedServiceOfAnotherClaimsNoIP: the derived Service of another service of the
// same name is no IP of the one that lacks it.
func TestDerivedServiceOfAnotherClaimsNoIP(t *testing.T) {
	s := newSharing(1, "west")
	winner := types.NamespacedName{Namespace: "demo", Name: "s-k1qtda5r7c"}
	loser := types.NamespacedName{Namespace: "demo", Name: "s-g9sgelsm7d"}
	if got := s.reconcile(t, winner.Name, v1beta1.ClusterSetIP, "east"); got != "IP" {
		t.Fatal(got)
	}
	s.derived[loser] = s.derived[winner] // both have the same name
	s.imports[loser] = &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{
		Namespace: loser.Namespace, Name: loser.Name, Labels: map[string]string{export.LabelManagedBy: export.Manager},
	}}
	if got := s.reconcileOnce(loser, v1beta1.ClusterSetIP,
		"west").ServiceImport.Status.Conditions[0].Reason; got != merge.ReasonForeignService {
		t.Fatalf("the other one: %s", got)
	}
	if got := s.reconcile(t, "web", v1beta1.ClusterSetIP, "west"); got != "IP" {
		t.Errorf("the only IP is free, but: %s", got)
	}
}

// TestIPsThatAreGivenBack go to a service that was refused, once it is looked at again.
func TestIPsThatAreGivenBack(t *testing.T) {
	s := newSharing(16, "hostile", "honest")
	for i := range 10 {
		want := "IP"
		if i == 9 {
			want = merge.ReasonClusterIPLimit
		}
		if got := s.reconcile(t, fmt.Sprint("x", i), v1beta1.ClusterSetIP, "hostile"); got != want || s.refused != (i == 9) {
			t.Errorf("x%d: %s, want %s; to be looked at again: %t", i, got, want, s.refused)
		}
	}
	if got := s.reconcile(t, "web", v1beta1.ClusterSetIP, "honest"); got != "IP" {
		t.Errorf("web of another member: %s", got)
	}
	if got := s.reconcile(t, "x3", v1beta1.ClusterSetIP); got != "none" {
		t.Errorf("x3, which nobody exports: %s", got)
	}
	if got := s.reconcile(t, "x9", v1beta1.ClusterSetIP, "hostile"); got != "IP" || s.refused {
		t.Errorf("x9 when there is room: %s", got)
	}
}
