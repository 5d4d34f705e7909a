// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// newCluster returns a cluster without problems.
func newCluster(id, pods, services string) *Cluster {
	return &Cluster{
		Cluster: &cluster.Cluster{
			Context: id, Namespace: "clusterset-dns", Config: &rest.Config{Host: "https://" + id + ".example"},
			ID: id, UID: "uid-of-" + id,
		},
		Version: "v1.36.0", Ahead: new(time.Duration),
		MCSVersion: "v1beta1", State: &state.Cluster{Version: state.Version, Cluster: id, MCSVersion: "v1beta1"},
		PodCIDRs: setup.AddPrefixes(nil, pods), ServiceCIDRs: setup.AddPrefixes(nil, services),
		Apex: cluster.Answer{Rcode: "NOERROR", Records: []string{"soa"}},
	}
}

// newSet returns two joined clusters without problems, except those that change makes.
func newSet(change func(east, west *Cluster)) *Set {
	east, west := newCluster("east", "10.64.0.0/24", "10.160.0.0/16"), newCluster("west", "10.65.0.0/24", "10.161.0.0/16")
	for _, pair := range [][2]*Cluster{{east, west}, {west, east}} {
		pair[0].State.Members = []state.Member{{Cluster: pair[1].ID, State: "fresh", Credential: "Secret clusterset-dns/a"}}
	}
	change(east, west)
	return &Set{Clusters: []*Cluster{east, west}, Zone: "clusterset.local"}
}

// texts are the problems among findings, each as its check, context, sentence and fix.
func texts(findings []Finding) string {
	var all []string
	for _, each := range findings {
		if each.What != "" {
			all = append(all, fmt.Sprintf("%s %s %s: %s > %s", each.Result, each.Check, each.Context, each.What, each.Fix))
		}
	}
	return strings.Join(all, "\n")
}

const logs = "Start clusterset-controller in namespace clusterset-dns. If it runs, find the cause in its logs: `kubectl --context west -n clusterset-dns logs -l app.kubernetes.io/component=controller --prefix --tail=200`."

const noCRDs = "failed crds east: The CRDs of the MCS API are missing, or serve neither v1beta1 nor v1alpha1. > kubectl --context east apply --server-side --force-conflicts -f deploy/chart/files/crds"

func TestChecks(t *testing.T) {
	for name, test := range map[string]struct {
		change func(east, west *Cluster)
		want   string
	}{
		"unreachable": {
			func(_, west *Cluster) { west.Unreachable = errors.New("no route to host") },
			"failed api-reachable west: The API server is unreachable: no route to host > Make sure that the API server at https://west.example is up, or correct the address and credentials of context west in your kubeconfig.",
		},
		"one cluster twice": {
			func(east, west *Cluster) { west.UID = east.UID },
			"failed distinct west: Context east refers to the same cluster. > Name each cluster once in --contexts, or point context west to another cluster in your kubeconfig.",
		},
		"an old API server": {
			func(east, _ *Cluster) { east.Version = "v1.34.3+k3s1" },
			"failed api-version east: Kubernetes v1.34.3+k3s1 is not supported. > Upgrade Kubernetes to 1.35 or newer.",
		},
		"a clock that is behind": {
			func(_, west *Cluster) { west.Ahead = ptr.To(-time.Minute) },
			"warning clock east: The clock of the API server is 1m0s ahead of that of west, so a newer export may count as the oldest in conflicts. > Correct the clock of one of the two control planes.",
		},
		"unknown UIDs": {func(east, west *Cluster) { east.UID, west.UID = "", "" }, ""},
		"no CRDs":      {func(east, _ *Cluster) { east.MCSVersion = "" }, noCRDs},
		"one CRD":      {func(east, _ *Cluster) { east.State.MCSVersion = "" }, noCRDs},
		"old CRDs": {
			func(east, _ *Cluster) { east.Lost = []string{"a of b", "c of d"} },
			"warning crds-complete east: The CRDs of the MCS API are outdated: they lose a of b and c of d. > kubectl --context east apply --server-side --force-conflicts -f deploy/chart/files/crds",
		},
		"members have too many rights": {
			func(east, _ *Cluster) {
				east.MemberHas = []string{"list pods", "create pods", "update pods", "delete pods"}
			},
			"failed member-least east: Members have more permissions than they need, such as: list pods, create pods, update pods. > Find the binding or the role that grants them, and delete or correct it: `kubectl --context east get clusterrolebindings,rolebindings -A -o wide | grep -E 'clusterset-dns[/:]clusterset-member|system:(serviceaccounts|authenticated)'`.",
		},
		"overlapping pods": {
			func(_, west *Cluster) { west.PodCIDRs = setup.AddPrefixes(nil, "10.64.0.128/25") },
			"failed pod-ranges east: Its pod range 10.64.0.0/24 (spec.podCIDRs of the nodes) overlaps 10.64.0.128/25, one of the pod ranges of west, so their pods cannot reach each other. > Name their networks (docs/operate/networks.md), or give one of the two clusters another pod range; nodes keep their ranges, so this takes new nodes.\n" +
				"failed pod-ranges west: Its pod range 10.64.0.128/25 (spec.podCIDRs of the nodes) overlaps 10.64.0.0/24, one of the pod ranges of east, so their pods cannot reach each other. > Name their networks (docs/operate/networks.md), or give one of the two clusters another pod range; nodes keep their ranges, so this takes new nodes.",
		},
		"nodes where another network has pods": {
			func(east, west *Cluster) {
				east.State.Members[0].CIDRs = []string{"10.65.0.0/16"}
				west.Network, west.Nodes = "b", setup.AddPrefixes(nil, "10.64.0.7/32")
			},
			"failed node-ranges east: Its pod range 10.64.0.0/24 (spec.podCIDRs of the nodes) overlaps 10.64.0.7/32, one of the nodes of west, which these pods cannot reach. > Give the nodes or the pods other addresses, or expose the exports by load balancers: docs/operate/networks.md.\n" +
				"failed member-ranges east: Endpoints of west at its node 10.64.0.7/32 are refused: its annotation cidrs has 10.65.0.0/16. > kubectl clusterset join east west",
		},
		"pods where another has Services": {
			func(_, west *Cluster) { west.ServiceCIDRs = setup.AddPrefixes(nil, "10.64.0.0/16") },
			"failed service-ranges east: Its pod range 10.64.0.0/24 (spec.podCIDRs of the nodes) overlaps 10.64.0.0/16, one of the Service ranges of west, which cannot reach these pods. > Change one of the two ranges; the Service range is in the ServiceCIDRs.",
		},
		"never a controller": {
			func(east, west *Cluster) {
				west.State, west.ID, west.Unidentified = nil, "", fmt.Errorf("context west: %w", cluster.ErrNeverRan)
				east.State.Members = nil
			},
			"failed controller west: The controller has never run in namespace clusterset-dns. > Install it, or set its namespace with --system-namespace: `helm install clusterset-dns deploy/chart --kube-context west --namespace clusterset-dns --create-namespace --set clusterId=<id> --set image.registry=<registry>`. " + logs,
		},
		"a controller that does not answer": {
			func(_, west *Cluster) {
				west.State, west.StateError = nil, errors.New("it does not know this question")
			},
			"failed controller west: The controller does not say what it knows: it does not know this question. > " + logs,
		},
		"one id twice": {
			func(_, west *Cluster) { west.ID = "east" },
			"failed cluster-id east: The cluster of context west has the id east, too. > helm upgrade clusterset-dns deploy/chart --kube-context east --namespace clusterset-dns --reset-then-reuse-values --set clusterId=<new id>\n" +
				"failed cluster-id west: The cluster of context east has the id east, too. > helm upgrade clusterset-dns deploy/chart --kube-context west --namespace clusterset-dns --reset-then-reuse-values --set clusterId=<new id>",
		},
		"not joined": {
			func(east, _ *Cluster) { east.State.Members, east.Namespace = nil, "mcs" },
			"failed joined east: There is no credential of west, so nothing is imported from it. > kubectl clusterset join east west --system-namespace mcs",
		},
		"ranges that have changed": {
			func(east, west *Cluster) {
				east.State.Members[0].CIDRs = []string{"10.65.0.0/25", "fd65::/64"}
				west.State.Members[0].CIDRs = []string{"10.64.0.0/16"}
			},
			"failed member-ranges east: Endpoints of west in its pod range 10.65.0.0/24 are refused: its annotation cidrs has 10.65.0.0/25,fd65::/64. > kubectl clusterset join east west",
		},
		"ranges of a member that join does not change": {
			func(east, _ *Cluster) {
				east.State.Members[0].CIDRs, east.State.Members[0].Credential = []string{"10.65.0.0/25"}, "ClusterProfile fleet/west"
			},
			"failed member-ranges east: Endpoints of west in its pod range 10.65.0.0/24 are refused: its annotation cidrs has 10.65.0.0/25. > Correct the annotation clusterset-dns.github.io/cidrs of ClusterProfile fleet/west.",
		},
		"a rank in one cluster": {
			func(east, _ *Cluster) { east.State.Members[0].Rank = 10 },
			"warning ranks-agree west: The rank of west is 0 in west, but 10 in east, so they may import the same exports differently. > Set the annotation clusterset-dns.github.io/rank of west to the same value: in its own cluster on namespace clusterset-dns, in all others on the Secret of the member.",
		},
		"a rank that is none, which the controller reports": {func(east, _ *Cluster) { east.State.Rank = 1001 }, ""},
		"findings of the controller": {
			func(east, _ *Cluster) {
				east.State.Findings = []state.Finding{
					{Name: "namespaces", Severity: state.Warning, What: "Namespace shop does not exist.", Fix: "Create it."},
					{Name: "of a later version", Severity: state.Failed, What: "west is stale.", Fix: "Look."},
				}
			},
			"warning namespaces east: Namespace shop does not exist. > Create it.\n" +
				"failed of a later version east: west is stale. > Look.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := texts(newSet(test.change).Check()); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestRankThatTheFirstClusterDoesNotKnow is compared among the others.
func TestRankThatTheFirstClusterDoesNotKnow(t *testing.T) {
	set := newSet(func(_, west *Cluster) {
		west.State.Members = append(west.State.Members, state.Member{Cluster: "south", Rank: 1})
	})
	north := newCluster("north", "10.66.0.0/24", "10.162.0.0/16")
	north.State.Members = []state.Member{{Cluster: "south", Rank: 2}}
	set.Clusters = append(set.Clusters, north)
	if got := texts(set.Check()); !strings.Contains(got, "ranks-agree north: The rank of south is 2 in north, but 1 in west, so") {
		t.Errorf("got\n%s", got)
	}
}

// TestChecksBeforeTheInstallation find no problem.
func TestChecksBeforeTheInstallation(t *testing.T) {
	set := newSet(func(east, west *Cluster) {
		for _, c := range []*Cluster{east, west} {
			c.ID, c.MCSVersion, c.State = "", "", nil
		}
	})
	set.Pre = true
	found := set.Check()
	if got := texts(found); got != "" {
		t.Errorf("got\n%s", got)
	}
	if slices.ContainsFunc(found, func(f Finding) bool { return f.Check == "node-ranges" }) {
		t.Error("which networks there are is not known yet")
	}
}

// TestSkips: a check that lacks a fact is not ok, and its reason says which one, or what to do instead.
func TestSkips(t *testing.T) {
	const alone = "No other cluster that is reachable is selected: select all clusters of the set with --contexts."
	forbidden := errors.New("forbidden")
	for name, test := range map[string]struct {
		change      func(east, west *Cluster)
		check, want string
	}{
		"known ranges": {func(_, _ *Cluster) {}, "pod-ranges", ""},
		"no ranges of the other": {
			func(_, west *Cluster) { west.PodCIDRs = nil }, "pod-ranges",
			"The pod ranges of west are unknown: compare them with [10.64.0.0/24].",
		},
		"no ranges for the annotation of the other": {
			func(east, west *Cluster) {
				east.State.Members[0].CIDRs, west.PodCIDRs, west.PodCIDRsError = []string{"10.65.0.0/16"}, nil, forbidden
			}, "member-ranges",
			"The ranges of west are unknown: compare them with its annotation cidrs, which has 10.65.0.0/16.",
		},
		"no other cluster": {func(east, west *Cluster) { west.UID = east.UID }, "joined", alone},
		"unreachable": {
			func(east, _ *Cluster) { east.Unreachable = errors.New("no") }, "dns-zone", "The API server is unreachable.",
		},
		"no id of the other": {func(_, west *Cluster) { west.ID = "" }, "joined", "The cluster id of west is unknown."},
		"no Corefile with the plugin": {
			func(_, _ *Cluster) {}, "corefile-cluster", "No Corefile that could be read serves the zone with the plugin multicluster and an id of the cluster.",
		},
		"no value of a variable": {
			func(east, _ *Cluster) { east.Corefile = parsed(t, plugin("cluster {$ID}\n")) }, "corefile-cluster",
			"No Corefile that could be read serves the zone with the plugin multicluster and an id of the cluster.",
		},
		"an id in the Corefile": {func(east, _ *Cluster) { east.Corefile, east.State = parsed(t, serves), nil }, "corefile-cluster", ""},
		"no node-local cache":   {func(_, _ *Cluster) {}, "node-local-dns", ""},
		"no import": {
			func(_, _ *Cluster) {}, "dns-names", "No import with an IP is known, or the cluster's DNS does not serve the zone.",
		},
	} {
		for _, finding := range newSet(test.change).Check() {
			if finding.Context == "east" && finding.Check == test.check &&
				(finding.Reason != test.want || (finding.Result == Skipped) != (test.want != "")) {
				t.Errorf("%s: got %+v", name, finding)
			}
		}
	}
}

// TestNothingIsKnown: each check of a cluster that may not be read is skipped, and says why, or fails.
func TestNothingIsKnown(t *testing.T) {
	const why = "forbidden to read it"
	err := errors.New(why)
	set := newSet(func(east, _ *Cluster) {
		*east = Cluster{
			Cluster:      &cluster.Cluster{Context: "east", Config: east.Config},
			Unidentified: err, StateError: err, LostError: err, RightsError: err, PodCIDRsError: err, CorefileError: err,
			NodeCachesError: err, DNSError: err,
		}
	})
	because := map[string]string{
		"api-reachable": "", "api-version": "Its version is unknown", "clock": "Its clock, or that of west, is unknown.", "crds": "",
		"node-ranges": "", "controller": "", "joined": noAnswer, "member-ranges": noAnswer, "ranks-agree": noAnswer,
		"findings": noAnswer, "dns-reachable": "", "dns-zone": unasked, "dns-names": unasked,
	}
	for _, finding := range set.Check() {
		want, other := because[finding.Check]
		if !other {
			want = why
		}
		if finding.Context == "east" && ((finding.Result == Skipped) != (want != "") || !strings.Contains(finding.Reason, want)) {
			t.Errorf("want %q, got %+v", want, finding)
		}
	}
}

// TestPartlyKnown: a check that lacks a fact about one cluster still finds the problems of others.
func TestPartlyKnown(t *testing.T) {
	for pods, want := range map[string]string{"10.65.0.0/24": Skipped, "10.64.0.0/16": state.Failed} {
		set := newSet(func(_, west *Cluster) { west.PodCIDRs = setup.AddPrefixes(nil, pods) })
		set.Clusters = append(set.Clusters, newCluster("north", "", "10.162.0.0/16"))
		for _, finding := range set.Check() {
			if finding.Context == "east" && finding.Check == "pod-ranges" && finding.Result != want {
				t.Errorf("%s in west: got %+v", pods, finding)
			}
		}
	}
}

func TestChecksAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, check := range allChecks {
		if seen[check.Name] || check.About == "" {
			t.Errorf("check %q: its name is taken, or nothing says what it is about", check.Name)
		}
		seen[check.Name] = true
	}
}

// must ends the test if there is an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
