// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
)

// sharing has the shares in cluster east, and its objects by the name of the service.
type sharing struct {
	*limits.IPs
	imports map[string]*v1beta1.ServiceImport
	derived map[string]*corev1.Service
}

func newSharing(ips int) *sharing {
	s := &sharing{imports: map[string]*v1beta1.ServiceImport{}, derived: map[string]*corev1.Service{}}
	s.restart(ips)
	return s
}

// restart forgets everything except the objects of the cluster.
func (s *sharing) restart(ips int) {
	s.IPs = limits.NewIPs(ips)
	s.SetMembers([]string{"hostile", "honest"})
	admitExisting(s.IPs, "east", slices.Collect(maps.Values(s.imports)))
}

// reconcile merges the exports of the clusters and stores the result. It returns "none" without an import, "IP" if it has
// one, or else the reason of its Ready.
func (s *sharing) reconcile(t *testing.T, name string, kind v1beta1.ServiceImportType, clusters ...string) string {
	t.Helper()
	service := types.NamespacedName{Namespace: "demo", Name: name}
	var contributions []merge.Contribution
	for _, cluster := range clusters {
		view := exporttest.View(cluster, 1, "80/TCP", "")
		view.Service, view.Spec.Type = service, kind
		contributions = append(contributions, merge.Contribution{View: view})
	}
	var result merge.Result
	var refused bool
	for range 2 { // the second pass has the IP
		result, refused = mergeWithin(s.IPs, merge.Observed{
			Cluster: "east", Service: service, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, ServiceImport: s.imports[name], DerivedService: s.derived[name],
			Place: placement.Here{Properties: func(string) map[string]string { return nil }}.Of,
		}, contributions)
		imported, derived := exporttest.Stored(result.ServiceImport, result.DerivedService)
		if s.imports[name] = imported; imported == nil {
			delete(s.imports, name)
		}
		if derived != nil {
			s.derived[name] = derived
		}
	}
	if result.ServiceImport == nil {
		return "none"
	}
	reason := result.ServiceImport.Status.Conditions[0].Reason
	if refused != (reason == merge.ReasonClusterIPLimit) {
		t.Errorf("%s: refused is %t, and the reason %s", name, refused, reason)
	}
	if len(result.ServiceImport.Spec.IPs) > 0 {
		return "IP"
	}
	return reason
}

// TestClusterIPsOfOneMember: a member that exports many services leaves enough cluster IPs for other members and the
// local cluster. Existing IPs stay, even after a restart, and other services can get IPs that are given back.
func TestClusterIPsOfOneMember(t *testing.T) {
	const limited = merge.ReasonClusterIPLimit
	s := newSharing(16)
	is := func(name, clusters, want string) {
		t.Helper()
		kind := v1beta1.ClusterSetIP
		if strings.HasPrefix(name, "headless") {
			kind = v1beta1.Headless
		}
		if got := s.reconcile(t, name, kind, strings.Fields(clusters)...); got != want {
			t.Errorf("%s of %s: %s, want %s", name, clusters, got, want)
		}
	}
	for i := range 12 {
		want := "IP"
		if i >= 9 {
			want = limited
		}
		is(fmt.Sprint("x", i), "hostile", want)
	}
	message := s.imports["x11"].Status.Conditions[0].Message
	if !strings.HasPrefix(message, "The imports of hostile used up their part of the 16 cluster IPs for imports. Withdraw") {
		t.Errorf("the message is %s", message)
	}
	for i := range 16 {
		is(fmt.Sprint("headless-", i), "honest", "Ready")
	}
	is("web", "honest", "IP")
	is("x3", "", "none")
	is("x9", "hostile", "IP") // there is room now

	is("own", "east", "IP")
	is("x10", "east hostile", "IP")
	is("x10", "hostile", "IP") // it exists
	is("x11", "honest hostile", limited)
	if got := s.reconcile(t, "headless-1", v1beta1.ClusterSetIP, "honest"); got != limited {
		t.Errorf("a headless service that becomes one with an IP: %s", got)
	}

	s.restart(4) // a smaller limit takes nothing away
	is("x11", "hostile", limited)
	is("x8", "hostile", "IP")
	is("x0", "hostile", "IP")
}

// TestExistingImportsAreShared: after a restart, an import for which one member has no room is charged to another. Clusters that are
// not members get no reserved part.
func TestExistingImportsAreShared(t *testing.T) {
	var imports []runtime.Object
	for i := range 10 { // the part of one member is 9 of 16
		each := &v1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: fmt.Sprint("web-", i)},
			Spec:       v1beta1.ServiceImportSpec{IPs: []string{"192.0.2.1"}},
			Status:     v1beta1.ServiceImportStatus{Clusters: []v1beta1.ClusterStatus{{Cluster: "north"}, {Cluster: "west"}}},
		}
		export.Mark(each)
		imports = append(imports, each)
	}
	r := withAPI(t, imports...)
	r.Frontends.Clock = r.Clock
	for _, cluster := range []string{"north", "south", "west"} {
		must(t, r.Local.Secrets.Indexer().Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: cluster, Labels: map[string]string{member.ClusterLabel: cluster},
		}}))
	}
	r.Attach()
	r.ips.SetMembers([]string{"left"})
	r.Members.Join(t.Context(), nil)
	ended, end := context.WithCancel(t.Context())
	end()
	r.Run(ended, 0, nil)
	if used, _ := r.ips.Use(); used != 10 {
		t.Errorf("of 10 IPs, %d are charged", used)
	}
	for cluster, want := range map[string]bool{"west": false, "left": false, "south": true} { // one is charged to west
		service := types.NamespacedName{Namespace: "demo", Name: "more"}
		if r.ips.Admit(service, []string{cluster}, false) != want {
			t.Errorf("an import of %s is not admitted as it should: %t", cluster, want)
		}
		r.ips.Admit(service, nil, false)
	}
}

// TestMaxImportIPs: half of the smallest range, at most the number that Kubernetes supports.
func TestMaxImportIPs(t *testing.T) {
	v4, v6 := netip.MustParsePrefix("10.96.0.0/20"), netip.MustParsePrefix("fd00:96::/64")
	for want, ranges := range map[int][]netip.Prefix{2048: {v6, v4}, mostImportIPs: {v6}} {
		if got := maxImportIPs(ranges); got != want {
			t.Errorf("ranges %s: %d, want %d", ranges, got, want)
		}
	}
}
