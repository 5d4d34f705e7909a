// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
)

// newPreSet is two clusters in which nothing is installed and nothing is wrong,
// but what is changed.
func newPreSet(change func(east, west *Cluster)) *Set {
	set := newSet(func(east, west *Cluster) {
		for _, c := range []*Cluster{east, west} {
			c.ID, c.Heartbeat, c.MCSVersion, c.State = "", nil, "", nil
			delete(c.Namespaces, c.System)
		}
		change(east, west)
	})
	set.Pre = true
	return set
}

// TestChecksBeforeTheInstallation has one fault after the other.
func TestChecksBeforeTheInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		change func(east, west *Cluster)
		says   []string // the check and its context
		what   string
	}{
		"nothing": {func(_, _ *Cluster) {}, nil, ""},
		"unreachable": {
			func(_, west *Cluster) { west.Unreachable = errors.New("no route to host") },
			[]string{"failed api-reachable west"},
			"no route to host",
		},
		"old Kubernetes": {
			func(east, _ *Cluster) { east.Version = "v1.29.1" }, []string{"failed api-version east"}, "v1.29.1",
		},
		"rights": {
			func(east, _ *Cluster) {
				east.Lacks = []manifest.Right{{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "a"}}
			},
			[]string{"failed install-rights east"},
			"You may not create deployments.apps in namespace a.",
		},
		"half of the CRDs": {
			func(east, _ *Cluster) {
				east.Definitions = map[string]*unstructured.Unstructured{v1beta1.ServiceExportFullName: {Object: map[string]any{
					"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
				}}}
			},
			[]string{"failed crds east"},
			"serviceimports.multicluster.x-k8s.io is missing",
		},
		"pods overlap": {
			func(east, west *Cluster) { west.Nodes[0].Spec.PodCIDRs = east.Nodes[0].Spec.PodCIDRs },
			[]string{"failed pod-ranges east", "failed pod-ranges west"},
			"10.64.0.0/24",
		},
		"a loopback address": {
			func(east, _ *Cluster) { east.Server = "https://127.0.0.1:6443" },
			[]string{"warning server-address east"},
			"https://127.0.0.1:6443",
		},
		"one ClusterProperty twice": {
			func(east, west *Cluster) { east.Property, west.Property = "a", "a" },
			[]string{"failed cluster-property east", "failed cluster-property west"},
			"has the id a, too",
		},
		"the id of a controller that runs": {
			func(east, west *Cluster) { east.Property, west.ID = "west", "west" },
			[]string{"failed cluster-property east"},
			"context west has the id west, too",
		},
		"an id that is none": {
			func(east, _ *Cluster) { east.Property = "East" }, []string{"failed cluster-property east"}, "East",
		},
		"a namespace of another program": {
			func(east, _ *Cluster) {
				east.Namespaces[east.System] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"app.kubernetes.io/name": "submariner"},
				}}
			},
			[]string{"warning system-namespace east"},
			"belongs to submariner",
		},
		"a namespace that is going": {
			func(east, _ *Cluster) {
				east.Namespaces[east.System] = &corev1.Namespace{Status: corev1.NamespaceStatus{
					Phase: corev1.NamespaceTerminating,
				}}
			},
			[]string{"failed system-namespace east"},
			"is being deleted",
		},
		"our own namespace": {
			func(east, _ *Cluster) {
				east.Namespaces[east.System] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{"app.kubernetes.io/name": "clusterset-dns"},
				}}
			}, nil, "",
		},
		"another implementation": {
			func(east, _ *Cluster) {
				east.Others, east.Imports = []string{"Submariner"}, make([]v1beta1.ServiceImport, 2)
			},
			[]string{"warning other-implementations east"},
			"Submariner, the writer of ServiceImports (2).",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var says []string
			what, notes := "", 0
			for _, finding := range Run(newPreSet(test.change)) {
				if finding.What != "" {
					says = append(says, finding.Result+" "+finding.Check+" "+finding.Context)
					what += finding.What
				}
				if finding.Check == "dns-server" && finding.Result == OK && strings.Contains(finding.Reason, "forward the zone") {
					notes++
				}
			}
			if !slices.Equal(says, test.says) || !strings.Contains(what, test.what) || notes == 0 {
				t.Errorf("got %q: %s (%d notes)", says, what, notes)
			}
		})
	}
}

// TestSelectedChecksExist holds the names of the selected checks.
func TestSelectedChecksExist(t *testing.T) {
	if got, want := len(Select(true)), len(before)+len(preChecks); got != want || len(Select(false)) != len(Checks) {
		t.Errorf("got %d checks, want %d", got, want)
	}
}

// TestPrerequisitesAreGathered reads them from a cluster.
func TestPrerequisitesAreGathered(t *testing.T) {
	client := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-config"},
		Data:       map[string]string{"clustermesh-enable-mcs-api": "true"},
	})
	client.Resources = []*metav1.APIResourceList{{GroupVersion: "submariner.io/v1alpha1"}}
	asked := 0
	allow := func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		asked++
		review.Status.Allowed = review.Spec.ResourceAttributes.Resource != "clusterroles"
		return true, review, nil
	}
	client.PrependReactor("create", "selfsubjectaccessreviews", allow)
	property := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": "east-1"}}}
	property.SetAPIVersion("about.k8s.io/v1alpha1")
	property.SetKind("ClusterProperty")
	property.SetName("cluster.clusterset.k8s.io")
	kinds := map[schema.GroupVersionResource]string{
		{Group: "about.k8s.io", Version: "v1alpha1", Resource: "clusterproperties"}: "ClusterPropertyList",
	}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, property)
	set := &Set{Clusters: []*Cluster{
		{Context: "east"}, {Context: "west", Unreachable: errors.New("no")},
	}}
	set.GatherPrerequisites(t.Context(), []*cluster.Cluster{
		{Context: "east", Namespace: "clusterset-dns", Kube: client, Dynamic: dynamic}, nil,
	})
	east := set.Clusters[0]
	var lacks []string
	for _, right := range east.Lacks {
		lacks = append(lacks, manifest.RightText(right))
	}
	want := []string{"create clusterroles.rbac.authorization.k8s.io", "patch clusterroles.rbac.authorization.k8s.io"}
	if !slices.Equal(lacks, want) || asked < 30 {
		t.Errorf("after %d questions: lacks %q", asked, lacks)
	}
	if east.Property != "east-1" || !slices.Equal(east.Others, []string{"Cilium", "Submariner"}) || !set.Pre {
		t.Errorf("got %q, %q", east.Property, east.Others)
	}
}

// TestTheDNSServerIsNamed holds what a user reads of the cluster's DNS server.
func TestTheDNSServerIsNamed(t *testing.T) {
	for image, want := range map[string]string{
		"coredns:v1.11.1": "kubectl clusterset coredns enable --contexts east",
		"coredns:v1.13.0": "After the installation: kubectl clusterset coredns enable --contexts east",
		"eks":             "After the installation: Amazon EKS manages CoreDNS: forward the zone",
	} {
		set := newPreSet(func(east, _ *Cluster) {
			east.Deployment = installed("example.org/" + image)
			east.Corefile = ". {\n  kubernetes cluster.local\n}\n"
			east.NodeCaches = make([]corev1.ConfigMap, 1)
			if image == "eks" {
				east.Deployment.Labels = map[string]string{"eks.amazonaws.com/component": "coredns"}
			}
		})
		var out strings.Builder
		if err := Text(&out, false, Run(set)); err != nil || !strings.Contains(out.String(),
			"✓  east (dns-server): CoreDNS runs example.org/"+image+". NodeLocal DNSCache has to pass the zone on, too. ") ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", image, err, out.String())
		}
	}
}
