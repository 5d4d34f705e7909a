// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
)

const blueSystem = "clusterset-dns-blue"

// newBlue is newSet with controllers of the set blue.
func newBlue(change func(east, west *Cluster)) *Set {
	return newSet(func(east, west *Cluster) {
		for _, c := range []*Cluster{east, west} {
			c.Set, c.System = "blue", blueSystem
			c.Namespaces[blueSystem] = c.Namespaces["clusterset-dns"]
		}
		change(east, west)
	})
}

// TestBindingsOfASet accepts the binding of the chart and no other one, which may be that of another set.
func TestBindingsOfASet(t *testing.T) {
	for name, test := range map[string]struct {
		set, system string
		object      metav1.ObjectMeta
		want        int
	}{
		"the default set":             {"", "clusterset-dns", metav1.ObjectMeta{Name: "clusterset-member"}, 0},
		"a named set":                 {"blue", blueSystem, metav1.ObjectMeta{Name: "clusterset-member-blue"}, 0},
		"that of the default set":     {"blue", blueSystem, metav1.ObjectMeta{Name: "clusterset-member"}, 1},
		"that of a named set":         {"", "clusterset-dns", metav1.ObjectMeta{Name: "clusterset-member-blue"}, 1},
		"of the namespace":            {"blue", blueSystem, metav1.ObjectMeta{Name: "clusterset-member", Namespace: blueSystem}, 0},
		"of the namespace, not by us": {"blue", blueSystem, metav1.ObjectMeta{Name: "clusterset-member-blue", Namespace: blueSystem}, 1},
		"of the default set's namespace": {
			"blue", blueSystem, metav1.ObjectMeta{Name: "clusterset-member", Namespace: "clusterset-dns"}, 1,
		},
	} {
		c := newCluster("east", "10.64.0.0/24", "10.160.0.0/16")
		c.Set, c.System = test.set, test.system
		c.binding("binding", test.object, []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: test.system, Name: manifest.MemberAccount,
		}})
		if len(c.Bindings) != test.want {
			t.Errorf("%s: got %v", name, c.Bindings)
		}
	}
}

// TestRightsOfASet does not print the manifest for a named set: its names are those of the default set, whose
// controller and members would lose their rights.
func TestRightsOfASet(t *testing.T) {
	lacks := func(east, _ *Cluster) {
		east.ControllerLacks = []manifest.Right{{Verb: "list", Resource: "services"}}
		east.MemberLacks, east.RolesGive = east.ControllerLacks, east.ControllerLacks
	}
	const (
		byDefault = "kubectl clusterset manifest rights | kubectl --context east apply --server-side --force-conflicts -f -"
		named     = "helm upgrade clusterset-dns-blue deploy/chart --kube-context east --namespace clusterset-dns-blue --reset-then-reuse-values"
	)
	for _, check := range []string{"controller-rights", "member-rights", "member-least"} {
		if got := hint(newSet(lacks), check); got != byDefault {
			t.Errorf("%s: got %q, want %q", check, got, byDefault)
		}
		if got := hint(newBlue(lacks), check); got != named {
			t.Errorf("%s: got %q, want %q", check, got, named)
		}
	}
}

// TestZoneOfASet tells a zone that the Corefile serves for another set. It does not recommend `coredns enable`, which
// serves the default set only, for a named set.
func TestZoneOfASet(t *testing.T) {
	const (
		edit  = "`kubectl --context east -n kube-system edit configmap coredns`."
		fix   = "Select the zone of cluster set blue with --zone, or set the option `clusterset blue` of multicluster in the Corefile: " + edit
		block = "Select the zone of cluster set blue with --zone, or add a server block for blue.local with the option " +
			"`clusterset blue` of multicluster to the Corefile: " + edit
	)
	for name, test := range map[string]struct {
		of             func(func(east, west *Cluster)) *Set
		corefile, what string
		fix            string
	}{
		"the default set": {newSet, "blue.local {\n multicluster\n}", "", ""},
		"the set":         {newBlue, "blue.local {\n multicluster {\n clusterset blue\n }\n}", "", ""},
		"for the default set": {
			newBlue, "blue.local {\n multicluster {\n cluster east\n }\n}",
			"The Corefile serves blue.local for the default cluster set, not for cluster set blue.", fix,
		},
		"for a named set": {
			newSet, "blue.local {\n multicluster {\n clusterset blue\n }\n}",
			"The Corefile serves blue.local for cluster set blue, not for the default cluster set.",
			"Select the zone of the default cluster set with --zone, or remove the option clusterset of multicluster from the Corefile: " +
				edit,
		},
		"not at all": {newBlue, ". {\n errors\n}", "The Corefile does not serve blue.local.", block},
	} {
		set := test.of(func(east, _ *Cluster) {
			east.Deployment, east.Corefile = installed("example.org/clusterset-coredns:v1"), test.corefile
			east.Apex = dns.Answer{Rcode: "SERVFAIL"}
		})
		set.Zone = "blue.local"
		what, fix := "", ""
		for _, finding := range Run(set) {
			if finding.Check == "corefile-multicluster" && finding.Context == "east" {
				what, fix = finding.What, finding.Fix
			}
		}
		if what != test.what || fix != test.fix {
			t.Errorf("%s: got\n%s\n%s\nwant\n%s\n%s", name, what, fix, test.what, test.fix)
		}
	}
}
