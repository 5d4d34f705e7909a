// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

func (b *bed) cutOff(t *testing.T, c *cluster) {
	t.Helper()
	t.Cleanup(c.way.Reconnect)
	c.way.CutOff(link.Both)
}

type finding struct{ Check, Context, Result, What, Mend string }

// check runs all checks.
func (b *bed) check(t *testing.T) []finding {
	t.Helper()
	got := b.run(t, append([]string{"check", "--contexts", "east,west,north", "-o", "json"}, b.dnsFlags()...)...)
	var list struct{ Findings []finding }
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	failed := slices.ContainsFunc(list.Findings, func(f finding) bool { return f.Result == "failed" })
	if failed != (got.status == 3) {
		t.Fatalf("exit status %d: %+v", got.status, got)
	}
	return list.Findings
}

// found is what a check found in a cluster, nil where nothing.
func (b *bed) found(t *testing.T, check, context string) *finding {
	t.Helper()
	for _, f := range b.check(t) {
		if f.Check == check && f.Context == context && f.wrong() {
			return &f
		}
	}
	return nil
}

// wrong tells whether something is, but for the credentials of north, which its
// API server makes short.
func (f finding) wrong() bool {
	return f.What != "" && !strings.HasPrefix(f.What, "The credential of north ends in ")
}

// testCheck breaks what is checked, one thing after the other: the check says
// so, and what it says mends it.
func testCheck(t *testing.T, b *bed) {
	if lines := strings.Count(b.do(t, "check", "--list"), "\n"); lines < 26 {
		t.Errorf("there are %d checks", lines-1)
	}
	eventually(t, "nothing to be wrong", func() error {
		for _, f := range b.check(t) {
			if f.wrong() {
				return fmt.Errorf("%+v", f)
			}
		}
		return nil
	})
	b.namespace(t, "checked", b.all()...)
	b.service(t, b.west, "checked", "web", false, 80, "10.65.0.10")
	b.service(t, b.west, "checked", "db", false, 80, "10.65.0.11")
	derived := export.DerivedServiceName(types.NamespacedName{Namespace: "checked", Name: "db"})
	const secret = "kubectl --context east -n clusterset-dns get secret member-west "
	for _, test := range []struct{ check, context, what string }{
		{"controller-rights", "west", "kubectl --context west delete clusterrolebinding clusterset-controller"},
		{"member-rights", "west", "kubectl --context west delete clusterrole clusterset-member"},
		{"member-least", "west", "kubectl --context west create clusterrolebinding more --clusterrole=view --serviceaccount=clusterset-dns:clusterset-member"},
		{"joined", "east", "kubectl --context east -n clusterset-dns delete secret member-west"},
		{"credential-usable", "east", `kubectl --context east -n clusterset-dns patch secret member-west -p '{"data":{"kubeconfig":"bm8="}}'`},
		{"credential-single", "east", secret + "-o yaml | sed '/uid:/d; s/name: member-west/name: second-west/' | kubectl --context east create -f -"},
		{"credential-lasts", "east", "kubectl clusterset join east west --duration 10m"},
		{"member-reachable", "east", `C=$(` + secret + `-o jsonpath={.data.kubeconfig} | base64 -d | sed 's#https://.*#https://127.0.0.1:1#' | base64 -w0)
kubectl --context east -n clusterset-dns patch secret member-west -p '{"data":{"kubeconfig":"'$C'"}}'`},
		{"member-identity", "east", "kubectl --context east -n clusterset-dns label secret member-west clusterset-dns.github.io/cluster=nobody --overwrite"},
		{"drained", "east", "kubectl clusterset drain west --contexts east"},
		{"drained-itself", "west", "kubectl clusterset drain west --contexts west"},
		{"member-ranges", "east", "kubectl --context east -n clusterset-dns annotate secret member-west clusterset-dns.github.io/cidrs=192.0.2.0/24"},
		{"zones", "north", "kubectl --context north label $(kubectl --context north get nodes -o name | head -n 1) topology.kubernetes.io/zone-"},
		{"coredns-image", "east", "kubectl --context east -n kube-system set image deployment/coredns coredns=example.org/stock:1"},
		{"corefile-multicluster", "east", "kubectl --context east -n kube-system get configmap coredns -o yaml | sed '/^ *multicluster/d' | kubectl --context east replace -f -"},
		{"coredns-rights", "east", "kubectl --context east delete clusterrolebinding kubectl-clusterset-coredns"},
		{"exports-valid", "west", `echo '{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"namespace":"checked","name":"nothing"}}' | kubectl --context west apply -f -`},
		{"imports-foreign", "east", `echo '{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"namespace":"checked","name":"web"},"spec":{"type":"ClusterSetIP","ports":[]}}' | kubectl --context east apply -f -
kubectl clusterset export checked/web --contexts west`},
		{"imports-ready", "east", "kubectl --context east -n checked create service clusterip " + derived + " --tcp=80\nkubectl clusterset export checked/db --contexts west"},
		{"namespaces", "north", "kubectl --context north delete namespace checked"},
		{"crds", "north", "kubectl --context north delete crd serviceexports.multicluster.x-k8s.io"},
	} {
		t.Run(test.check, func(t *testing.T) {
			b.shell(t, test.what)
			var told *finding
			eventually(t, "it to be said", func() error {
				if told = b.found(t, test.check, test.context); told == nil {
					return fmt.Errorf("nothing is said")
				}
				return nil
			})
			t.Logf("%s\n> %s", told.What, told.Mend)
			b.shell(t, told.Mend)
			eventually(t, "it to be mended by "+told.Mend, func() error {
				if left := b.found(t, test.check, test.context); left != nil {
					return fmt.Errorf("%+v", left)
				}
				return nil
			})
		})
	}
	eventually(t, "all to be as before", func() error {
		for _, f := range b.check(t) {
			if f.wrong() {
				return fmt.Errorf("%+v", f)
			}
		}
		return nil
	})
}
