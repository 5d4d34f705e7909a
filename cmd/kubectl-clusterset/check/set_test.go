// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
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

// describe makes the heartbeat of a cluster describe it.
func describe(c *Cluster, set, listed string) {
	renewed := metav1.NewMicroTime(now)
	c.Heartbeat = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &c.ID, RenewTime: &renewed}}
	c.Heartbeat.Annotations = map[string]string{
		member.HeartbeatSetAnnotation: set,
		properties.Annotation:         fmt.Sprintf(`{%q:%q}`, properties.ClusterSet, listed),
	}
}

// TestMemberOfAnotherSet tells a list of sets that lacks one from a controller of another set. It keeps the others of
// the list.
func TestMemberOfAnotherSet(t *testing.T) {
	const patch = " patch clusterproperty clusterset.k8s.io --type merge -p '{\"spec\":{\"value\":\""
	for name, test := range map[string]struct {
		set, is    string // of the local controller and of the member's
		own, lists string
		fix        string
	}{
		"a list without the set": {
			"blue", "blue", "prod,blue", "prod, stage",
			"Add blue to the property of west: `kubectl --context west" + patch + "prod,stage,blue\"}}'`.",
		},
		"lists without a common set": {
			"", "", "prod,blue", "stage",
			"Add a set of one list to the other: `kubectl --context east" + patch + "prod,blue,<cluster set>\"}}'`, or " +
				"`kubectl --context west" + patch + "stage,<cluster set>\"}}'`.",
		},
		"a controller of the default set": {
			"blue", "", "prod,blue", "prod,blue",
			"The controller that Secret member-west refers to is of the default cluster set. Join that of cluster set blue: " +
				"`kubectl clusterset join east west --system-namespace clusterset-dns-blue`.",
		},
		"a controller of a named set": {
			"", "red", "", "",
			"The controller that Secret member-west refers to is of cluster set red. Join that of the default cluster set: " +
				"`kubectl clusterset join east west`.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet
			if test.set != "" {
				set = newBlue
			}
			got := hint(set(func(east, west *Cluster) {
				describe(east, test.set, test.own)
				describe(west, test.is, test.lists)
				m := &east.Members[0]
				m.Lease.Annotations = map[string]string{memberstate.StateAnnotation: "stale"}
				m.Events = []corev1.Event{{
					Type: "Warning", Reason: memberstate.EventMemberQuarantined, Message: "not a set of " + properties.ClusterSet,
				}}
			}), "member-quarantined")
			if got != test.fix {
				t.Errorf("got\n%s\nwant\n%s", got, test.fix)
			}
		})
	}
}

// TestNamespaceOfAnotherSet reports a label that one of the clusters lacks, or has alone.
func TestNamespaceOfAnotherSet(t *testing.T) {
	for name, test := range map[string]struct {
		of        func(func(east, west *Cluster)) *Set
		label     string
		what, fix string // empty if nothing is wrong
	}{
		"of the set":         {newBlue, "blue", "", ""},
		"of the default set": {newSet, "", "", ""},
		"no label": {
			newBlue, "", "Namespace shop belongs to the default cluster set, so exports of cluster set blue are not imported into it " +
				"(services: 1).",
			"If it is to be of cluster set blue: `kubectl --context east label namespace shop " +
				"clusterset-dns.github.io/clusterset=blue --overwrite`.",
		},
		"a label": {
			newSet, "blue", "Namespace shop belongs to cluster set blue, so exports of the default cluster set are not imported " +
				"into it (services: 1).",
			"If it is to be of the default cluster set: `kubectl --context east label namespace shop " +
				"clusterset-dns.github.io/clusterset-`.",
		},
	} {
		set := test.of(func(east, _ *Cluster) {
			namespace := &corev1.Namespace{}
			if test.label != "" {
				namespace.Labels = map[string]string{export.LabelSet: test.label}
			}
			east.Namespaces["shop"] = namespace
			east.Sources = map[types.NamespacedName][]facts.Source{{Namespace: "shop", Name: "web"}: nil}
		})
		what, fix := "", ""
		for _, finding := range Run(set) {
			if finding.Check == "namespaces" && finding.Context == "east" {
				what, fix = finding.What, finding.Fix
			}
		}
		if what != test.what || fix != test.fix {
			t.Errorf("%s: got\n%s\n%s\nwant\n%s\n%s", name, what, fix, test.what, test.fix)
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
