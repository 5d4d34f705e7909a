// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
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
		c.Set, c.System = export.Set(test.set), test.system
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

// TestSlicesLeftOfASet deletes those of the set, as the cluster may still be in another one.
func TestSlicesLeftOfASet(t *testing.T) {
	for set, want := range map[export.Set]string{
		"":     "source-cluster=west,endpointslice.kubernetes.io/managed-by=clusterset-controller.clusterset-dns.github.io,!clusterset-dns.github.io/clusterset'",
		"blue": "source-cluster=west,endpointslice.kubernetes.io/managed-by=named.clusterset-controller.clusterset-dns.github.io,clusterset-dns.github.io/clusterset=blue'",
	} {
		got := hint(newSet(func(east, _ *Cluster) {
			east.Set, east.Members = set, nil
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{export.LabelSourceCluster: "west"},
			}}
			set.Mark(slice)
			east.Slices = append(east.Slices, slice)
		}), "left-behind")
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", set, got, want)
		}
	}
}
