// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newCluster is one in which nothing is wrong.
func newCluster(id string, pods, services string) *Cluster {
	heard := metav1.NewMicroTime(now.Add(-3 * time.Second))
	return &Cluster{
		Context: id, Server: "https://" + id + ".example",
		ID: id, UID: "uid-of-" + id, System: "clusterset-dns", Now: now, Version: "v1.37.1", MCSVersion: "v1beta1",
		Namespaces: map[string]*corev1.Namespace{"clusterset-dns": {}},
		Heartbeat:  &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &id, RenewTime: &heard}},
		State:      &state.Cluster{Version: state.Version, Cluster: id},
		Nodes: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{corev1.LabelTopologyZone: "a"}},
			Spec:       corev1.NodeSpec{PodCIDRs: []string{pods}},
			Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.1"}},
		}},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(services)},
		Apex:         dns.Answer{Rcode: "NOERROR", Records: []string{"soa"}},
	}
}

// newSet is two clusters that are joined, and in which nothing is wrong but what
// is changed.
func newSet(change func(east, west *Cluster)) *Set {
	east, west := newCluster("east", "10.64.0.0/24", "10.160.0.0/16"),
		newCluster("west", "10.65.0.0/24", "10.161.0.0/16")
	for _, pair := range [][2]*Cluster{{east, west}, {west, east}} {
		pair[0].State.Members = []state.Member{{
			Cluster: pair[1].ID, State: "fresh", Credential: "Secret clusterset-dns/member-" + pair[1].ID,
		}}
	}
	change(east, west)
	return &Set{Clusters: []*Cluster{east, west}, Zone: "clusterset.local"}
}

func TestChecks(t *testing.T) {
	for name, test := range map[string]struct {
		change func(east, west *Cluster)
		want   string // check of a context, what, and what fixes it
	}{
		"unreachable": {
			func(_, west *Cluster) { west.Unreachable = errors.New("no route to host") },
			"failed api-reachable west: The API server is unreachable: no route to host > Make sure that the API server at https://west.example is up, or correct the address and credentials of context west in your kubeconfig.",
		},
		"old Kubernetes": {
			func(east, _ *Cluster) { east.Version = "v1.29.3+k3s1" },
			"failed api-version east: Kubernetes v1.29.3+k3s1 is not supported. > Upgrade Kubernetes to 1.30 or newer.",
		},
		"one cluster twice": {
			func(east, west *Cluster) { west.UID = east.UID },
			"failed distinct west: Context east refers to the same cluster. > Name each cluster once in --contexts, or point context west to another cluster in your kubeconfig.",
		},
		"one id twice": {
			func(_, west *Cluster) { west.ID = "east" },
			"failed cluster-id east: The cluster of context west has the id east, too. > helm upgrade clusterset-dns deploy/chart --kube-context east --namespace clusterset-dns --reset-then-reuse-values --set clusterId=<new id>\n" +
				"failed cluster-id west: The cluster of context east has the id east, too. > helm upgrade clusterset-dns deploy/chart --kube-context west --namespace clusterset-dns --reset-then-reuse-values --set clusterId=<new id>",
		},
		"clocks": {
			func(_, west *Cluster) { west.Ahead = time.Minute },
			"warning clock west: The clock of the API server is 1m0s ahead of that of east, so new tokens may not be valid there yet. > Correct the clock of one of the two control planes.",
		},
		"no controller": {
			func(_, west *Cluster) { west.Now = now.Add(time.Minute) },
			"failed controller west: The controller has not renewed its heartbeat for 1m3s. > Start clusterset-controller in namespace clusterset-dns. If it runs, find the cause in its logs: `kubectl --context west -n clusterset-dns logs -l app.kubernetes.io/component=controller --prefix --tail=200`.",
		},
		"never a controller": {
			func(_, west *Cluster) { west.Heartbeat = nil },
			"failed controller west: The controller has never written a heartbeat to namespace clusterset-dns. > Start clusterset-controller in namespace clusterset-dns. If it runs, find the cause in its logs: `kubectl --context west -n clusterset-dns logs -l app.kubernetes.io/component=controller --prefix --tail=200`.",
		},
		"another namespace of the controller": {
			func(_, west *Cluster) { west.System = "mcs" },
			"failed namespace west: Namespace mcs does not exist: the controller is not installed, or runs in another namespace (--system-namespace). > helm install clusterset-dns deploy/chart --kube-context west --namespace mcs --create-namespace --set clusterId=<id> --set image.registry=<registry>",
		},
		"without a checkout": {
			func(_, west *Cluster) { west.Release, west.System = "0.1.0", "mcs" },
			"failed namespace west: Namespace mcs does not exist: the controller is not installed, or runs in another namespace (--system-namespace). > helm install clusterset-dns oci://ghcr.io/clusterset-dns/charts/clusterset-dns --version 0.1.0 --kube-context west --namespace mcs --create-namespace --set clusterId=<id>",
		},
		"not joined": {
			func(east, _ *Cluster) { east.State.Members = nil },
			"failed joined east: There is no credential of west, so nothing is imported from it. > kubectl clusterset join east west",
		},
		"a controller that does not answer": {
			func(east, _ *Cluster) {
				east.State, east.StateError = nil, errors.New("it does not know this question")
			},
			"failed controller-answers east: The controller does not say what it knows: it does not know this question. > Find the cause in the logs of the controller: `kubectl --context east -n clusterset-dns logs -l app.kubernetes.io/component=controller --prefix --tail=200`.",
		},
		"findings of the controller": {
			func(east, _ *Cluster) {
				east.State.Findings = []state.Finding{
					{Name: "namespaces", Severity: state.Warning, What: "Namespace shop does not exist.", Fix: "Create it."},
					{Name: "member-fresh", Severity: state.Failed, What: "west is stale.", Fix: "Look."},
				}
			},
			"failed member-fresh east: west is stale. > Look.\n" +
				"warning namespaces east: Namespace shop does not exist. > Create it.",
		},
		"a member confined to other ranges than those of its pods": {
			func(east, _ *Cluster) { east.State.Members[0].CIDRs = []string{"10.99.0.0/16"} },
			"failed member-ranges east: Secret clusterset-dns/member-west confines west to addresses in 10.99.0.0/16, but it also has pods in 10.65.0.0/24, whose endpoints are refused. > kubectl --context east -n clusterset-dns annotate secret member-west 'clusterset-dns.github.io/cidrs=10.99.0.0/16,10.65.0.0/24' --overwrite",
		},
		"overlapping pods": {
			func(_, west *Cluster) { west.Nodes[0].Spec.PodCIDRs = []string{"10.64.0.128/25"} },
			"failed pod-ranges east: Its pod range 10.64.0.0/24 (spec.podCIDRs of the nodes) overlaps 10.64.0.128/25 of west, so their pods cannot reach each other. Ignore this if your CNI assigns other ranges. > Give one of the two clusters another pod range; nodes keep their ranges, so this takes new nodes.\n" +
				"failed pod-ranges west: Its pod range 10.64.0.128/25 (spec.podCIDRs of the nodes) overlaps 10.64.0.0/24 of east, so their pods cannot reach each other. Ignore this if your CNI assigns other ranges. > Give one of the two clusters another pod range; nodes keep their ranges, so this takes new nodes.",
		},
		"pods where another has Services": {
			func(_, west *Cluster) { west.ServiceCIDRs = prefixes([]string{"10.64.0.0/16"}) },
			"failed service-ranges east: Its pod range 10.64.0.0/24 (spec.podCIDRs of the nodes) overlaps the Service range 10.64.0.0/16 of west, which cannot reach these pods. Ignore this if your CNI assigns other ranges. > Change one of the two ranges; the Service range is in the ServiceCIDRs.",
		},
		"an id that is none": {
			func(_, west *Cluster) { west.ID = "No" },
			"failed cluster-id west: cluster id \"No\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?') > helm upgrade clusterset-dns deploy/chart --kube-context west --namespace clusterset-dns --reset-then-reuse-values --set clusterId=<new id>\n" +
				"failed joined east: There is no credential of No, so nothing is imported from it. > kubectl clusterset join east west",
		},
		"a node without a zone, and nobody asks": {
			func(east, _ *Cluster) { east.Nodes[0].Labels = nil },
			"",
		},
		"a node without a zone, and DNS asks": {
			func(east, _ *Cluster) {
				east.Nodes[0].Labels, east.Corefile = nil,
					". {\n multicluster clusterset.local {\n cluster east\n prefer zone\n }\n}"
			},
			"warning zones east: Node node has no label topology.kubernetes.io/zone, so its clients do not prefer near endpoints, although the Corefile has `prefer zone`. > kubectl --context east label node node topology.kubernetes.io/zone=<zone of the node>",
		},
		"a rank in one cluster": {
			func(east, _ *Cluster) { east.State.Members[0].Rank = 10 },
			"warning ranks west: The rank of west is 0 in west, but 10 in east, so they may import the same exports differently. > kubectl --context west annotate namespace clusterset-dns clusterset-dns.github.io/rank=10 --overwrite",
		},
		"a rank of the cluster itself alone": {
			func(east, _ *Cluster) {
				east.State.Rank = -1
			},
			"warning ranks west: The rank of east is 0 in west, but -1 in east, so they may import the same exports differently. > kubectl --context west -n clusterset-dns annotate secret member-east 'clusterset-dns.github.io/rank=-1' --overwrite",
		},
		"a rank of a member that is not selected": {
			func(east, west *Cluster) {
				for i, c := range []*Cluster{east, west} {
					c.State.Members = append(c.State.Members, state.Member{
						Cluster: "north", Rank: i, Credential: "Secret clusterset-dns/north",
					})
				}
			},
			"warning ranks west: The rank of north is 1 in west, but 0 in east, so they may import the same exports differently. > kubectl --context west -n clusterset-dns annotate secret north 'clusterset-dns.github.io/rank=0' --overwrite",
		},
		"a binding in a namespace": {
			func(east, _ *Cluster) {
				east.Bindings = []Binding{{Kind: "rolebinding", Namespace: "shop", Name: "more"}}
			},
			"failed member-least east: The rolebinding more grants service account clusterset-member more than members need. > See what it grants: `kubectl --context east describe rolebinding more -n shop`. If it is not needed, delete it: `kubectl --context east delete rolebinding more -n shop`.",
		},
		"an old node": {
			func(_, west *Cluster) { west.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.24.0" },
			"warning node-version west: Node node runs v1.24.0, whose kube-proxy may keep sending traffic to a silent cluster. > Upgrade the node to 1.26 or newer.",
		},
		"no zone of the set": {
			func(_, west *Cluster) { west.Apex = dns.Answer{Rcode: "NXDOMAIN"} },
			"failed coredns west: Deployment kube-system/coredns does not exist, and the cluster's DNS returns NXDOMAIN for zone clusterset.local. > " + byHand,
		},
		"no DNS": {
			func(_, west *Cluster) { west.DNSError = errors.New("no pod is ready") },
			"warning coredns west: Deployment kube-system/coredns does not exist, and the cluster's DNS could not be queried. > " + byHand + "\n" +
				"warning dns-reachable west: The cluster's DNS could not be queried: no pod is ready. > kubectl clusterset check --contexts west --dns west=<address>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, finding := range Run(newSet(test.change)) {
				if finding.What != "" && !known(finding) {
					got = append(got, finding.Result+" "+finding.Check+" "+finding.Context+": "+finding.What+" > "+
						finding.Fix)
				}
			}
			if text := strings.Join(got, "\n"); text != test.want {
				t.Errorf("got\n%s\nwant\n%s", text, test.want)
			}
		})
	}
}

const byHand = "Configure the cluster's DNS for clusterset.local by hand: forward the zone to the chart's CoreDNS (--set coredns.enabled=true), or use a CoreDNS with the plugin multicluster. If it cannot be queried, set its address with --dns."

// known are findings of the sets of these tests, whose clusters have no
// definitions.
func known(finding Finding) bool { return finding.Check == "crds" }

func TestCoreDNSChecks(t *testing.T) {
	set := newSet(func(east, west *Cluster) {
		east.Deployment, west.Deployment = installed("example.org/clusterset-coredns:v1"),
			installed("example.org/clusterset-coredns:v2")
		east.Corefile, west.Corefile = ". {\n multicluster clusterset.local\n}", ". {\n errors"
	})
	var got []string
	for _, finding := range Run(set) {
		if finding.What != "" && finding.Check != "crds" {
			got = append(got, finding.Check+" "+finding.Context)
		}
	}
	if want := []string{"coredns-version east", "corefile west"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDefinitions(t *testing.T) {
	definition := func(established string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": established}}}}}
	}
	for name, test := range map[string]struct {
		exports, version string
		want             string
	}{
		"names that are taken": {
			"False", "v1beta1",
			"CustomResourceDefinition serviceexports.multicluster.x-k8s.io is not established. > Fix the cause that its conditions report: `kubectl --context east describe crd serviceexports.multicluster.x-k8s.io`.",
		},
		"nothing is served": {"True", "", "The CRDs of the MCS API serve neither v1beta1 nor v1alpha1. > kubectl clusterset manifest crds | kubectl --context east apply --server-side --force-conflicts -f -"},
	} {
		set := newSet(func(east, _ *Cluster) {
			east.MCSVersion = test.version
			east.Definitions = map[string]*unstructured.Unstructured{
				v1beta1.ServiceExportFullName: definition(test.exports),
				v1beta1.ServiceImportFullName: definition("True"),
			}
		})
		for _, finding := range Run(set) {
			if finding.Check == "crds" && finding.Context == "east" && finding.What+" > "+finding.Fix != test.want {
				t.Errorf("%s: got %s > %s", name, finding.What, finding.Fix)
			}
		}
	}
}

func TestOlder(t *testing.T) {
	for _, order := range [][2]string{
		{"v1", "v2"},
		{"v1.9.0", "v1.10.0"},
		{"0.1.0", "0.2.0"},
		{"0.2.0-alpha", "0.2.0"},
		{"a", "b"},
	} {
		if !older(order[0], order[1]) || older(order[1], order[0]) {
			t.Errorf("%v are not in order", order)
		}
	}
}

func TestChecksAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, check := range Checks {
		if seen[check.Name] || check.About == "" {
			t.Errorf("check %q: its name is taken, or nothing says what it is about", check.Name)
		}
		seen[check.Name] = true
	}
	if len(Checks) < 25 {
		t.Errorf("there are %d checks", len(Checks))
	}
}
