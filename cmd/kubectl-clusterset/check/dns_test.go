// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// installed is a CoreDNS as kubeadm installs it.
func installed(image string) *appsv1.Deployment {
	return &appsv1.Deployment{
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "coredns", Image: image}},
		}}},
		Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
}

// TestWaysToAnswerTheZone has a stock CoreDNS in east. Whichever way answers for
// the zone, nothing is wrong, and no finding recommends to replace the image.
func TestWaysToAnswerTheZone(t *testing.T) {
	const enable = "coredns enable"
	const stock = "The Corefile serves clusterset.local with the option multicluster of the stock plugin kubernetes. Its " +
		"answers have the TTL of that plugin. They differ for ports and host names of other implementations, see " +
		"docs/interop.md."
	lacks := []manifest.Right{{Verb: "list", Group: "multicluster.x-k8s.io", Resource: "serviceimports"}}
	for name, test := range map[string]struct {
		corefile string
		change   func(*Cluster)
		says     []string // checks
		why      string   // of coredns-image
		fix      string   // part of that of the first
	}{
		"forwarding": {
			". {\n kubernetes cluster.local\n}\nclusterset.local:53 {\n forward . 10.96.0.99\n}",
			func(c *Cluster) { c.CoreDNSLacks = lacks }, nil,
			"The Corefile forwards clusterset.local to another server.", "",
		},
		"forwarding, and no answer": {
			"clusterset.local:53 {\n forward . 10.96.0.99\n}",
			func(c *Cluster) { c.Apex = dns.Answer{Rcode: "SERVFAIL"} },
			[]string{"dns-zone"},
			"The Corefile forwards clusterset.local to another server.",
			"Make the server to which the Corefile forwards clusterset.local serve",
		},
		"the stock plugin": {
			". {\n kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n }\n}", nil, nil,
			stock, "",
		},
		"the stock plugin without rights": {
			". {\n kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n }\n}",
			func(c *Cluster) { c.CoreDNSLacks = lacks },
			[]string{"coredns-rights"},
			stock, "create clusterrolebinding clusterset-stock-coredns --clusterrole=clusterset-coredns --serviceaccount=kube-system:default`.",
		},
		"a file that the Corefile imports": {
			"import custom/*.server\n. {\n kubernetes cluster.local\n}", func(c *Cluster) { c.CoreDNSLacks = lacks },
			nil,
			"The cluster's DNS serves clusterset.local in a way that the Corefile does not show.", "",
		},
		"a Corefile that may not be read": {
			"", nil, nil,
			"The cluster's DNS serves clusterset.local in a way that the Corefile does not show.", "",
		},
		"the plugin, and the stock image": {
			". {\n multicluster clusterset.local\n}", nil,
			[]string{"coredns-image"},
			"",
			"kubectl --context east -n kube-system set image deployment/coredns coredns=<image of CoreDNS with multicluster>",
		},
		"no way at all": {
			". {\n kubernetes cluster.local\n}", func(c *Cluster) { c.Apex = dns.Answer{Rcode: "NXDOMAIN"} },
			[]string{"corefile-multicluster", "dns-zone"},
			"The Corefile does not serve clusterset.local.", enable + " --contexts east",
		},
		"no way at all, and another one manages CoreDNS": {
			". {\n kubernetes cluster.local\n}", func(c *Cluster) {
				c.Apex = dns.Answer{Rcode: "NXDOMAIN"}
				c.Deployment.Labels = map[string]string{"eks.amazonaws.com/component": "coredns"}
			},
			[]string{"corefile-multicluster", "dns-zone"},
			"The Corefile does not serve clusterset.local.",
			"Amazon EKS manages CoreDNS: forward the zone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(func(east, _ *Cluster) {
				east.Deployment, east.Corefile = installed("registry.k8s.io/coredns/coredns:v1.12.2"), test.corefile
				if test.change != nil {
					test.change(east)
				}
			})
			var says []string
			fix, why := "", ""
			for _, finding := range Run(set) {
				if finding.What != "" && !known(finding) {
					says = append(says, finding.Check)
					if fix == "" {
						fix = finding.Fix
					}
				}
				if finding.Check == "coredns-image" && finding.Context == "east" {
					why = finding.Reason
				}
			}
			if !slices.Equal(says, test.says) || why != test.why || !strings.Contains(fix, test.fix) ||
				!strings.Contains(test.fix, enable) && strings.Contains(fix, enable) {
				t.Errorf("got %v, %q, %q", says, why, fix)
			}
		})
	}
}

// TestChartWithoutTheID: where the cluster's DNS forwards the zone, the id matters in the Corefile of the chart.
func TestChartWithoutTheID(t *testing.T) {
	const forwards = ". {\n kubernetes cluster.local\n}\nclusterset.local:53 {\n forward . 10.96.0.99\n}"
	const fix = "helm upgrade clusterset-dns deploy/chart --kube-context east --namespace clusterset-dns " +
		"--reset-then-reuse-values --set clusterId=east"
	chart := func(options string) string {
		return "(multicluster-options) {\n" + options + "}\nclusterset.local:53 {\n multicluster {\n  import multicluster-options\n }\n}\n"
	}
	for name, test := range map[string]struct {
		corefile, chart, prefers, want string
	}{
		"no id":                    {forwards, chart(""), "cluster", fix},
		"another id":               {forwards, chart("    cluster west\n"), "cluster", fix},
		"the id":                   {forwards, chart("    cluster east\n"), "cluster", ""},
		"nothing prefers":          {forwards, chart(""), "none", ""},
		"unknown":                  {forwards, "", "cluster", ""},
		"another zone":             {forwards, "example.set {\n multicluster\n}", "cluster", ""},
		"does not parse":           {forwards, "clusterset.local {", "cluster", ""},
		"served in another manner": {". {\n kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n }\n}", chart(""), "cluster", ""},
	} {
		set := newSet(func(east, _ *Cluster) {
			east.Deployment, east.Corefile = installed("registry.k8s.io/coredns/coredns:v1.12.2"), test.corefile
			east.ChartCorefile = test.chart
			east.Imports = []v1beta1.ServiceImport{{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "db", Labels: map[string]string{names.ManagedBy: export.Manager},
					Annotations: map[string]string{names.Prefer: test.prefers},
				},
				Spec: v1beta1.ServiceImportSpec{Type: v1beta1.Headless},
			}}
		})
		if got := hint(set, "corefile-cluster"); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestChartIsFound by what only administrators can write.
func TestChartIsFound(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "dns", Name: "clusterset-coredns"}
	client := fake.NewClientset(
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Subjects: []rbacv1.Subject{{Name: meta.Name, Namespace: meta.Namespace}},
		},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{coredns.Key: "text"}},
	)
	if got := coredns.ChartCorefile(t.Context(), &cluster.Cluster{Kube: client}); got != "text" {
		t.Errorf("got %q", got)
	}
	if got := coredns.ChartCorefile(t.Context(), &cluster.Cluster{Kube: fake.NewClientset()}); got != "" {
		t.Errorf("got %q", got)
	}
}
