// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

var derived = export.DerivedServiceName(types.NamespacedName{Namespace: "checked", Name: "a"})

var serviceFaults = []fault{
	{
		name: "an export of no Service", round: "services", says: []string{"exports-valid west"},
		shell: `echo '{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"namespace":"checked","name":"nothing"}}' | kubectl --context west apply -f -`,
		which: "unexport",
	},
	{
		name: "exports that disagree", round: "services", says: []string{"exports-agree east", "exports-agree west"},
		do: func(t *testing.T, b *bed) {
			b.service(t, b.east, "checked", "d", 8080, "10.64.0.10")
			b.export(t, "checked/d", b.west, b.east)
		},
		hand: map[string]func(*testing.T, *bed){"kubectl clusterset explain checked/d": func(t *testing.T, b *bed) {
			b.service(t, b.east, "checked", "d", 80, "10.64.0.10")
		}},
		after: "kubectl clusterset unexport checked/d --contexts east,west",
	},
	{
		name: "a Service in the way", round: "services", says: []string{"imports-ready east"},
		shell: "kubectl --context east -n checked create service clusterip " + derived +
			" --tcp=80\nkubectl clusterset export checked/a --contexts west",
		after: "kubectl clusterset unexport checked/a --contexts west",
	},
	{
		name: "a ServiceImport in the way", round: "services", says: []string{"imports-foreign east"},
		shell: `echo '{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"namespace":"checked","name":"b"},"spec":{"type":"ClusterSetIP","ports":[]}}' | kubectl --context east apply -f -
kubectl clusterset export checked/b --contexts west`,
		which: "adopt=true",
		after: "kubectl clusterset unexport checked/b --contexts west",
	},
	{
		name: "a ServiceImport in the way that nobody uses", round: "services", says: []string{"imports-foreign north"},
		shell: `echo '{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"namespace":"checked","name":"e"},"spec":{"type":"ClusterSetIP","ports":[]}}' | kubectl --context north apply -f -
kubectl clusterset export checked/e --contexts west`,
		which: "delete serviceimport",
		after: "kubectl clusterset unexport checked/e --contexts west",
	},
	{
		name: "no namespace", round: "services", says: []string{"namespaces north"},
		do: func(t *testing.T, b *bed) {
			b.namespace(t, "elsewhere", b.east, b.west)
			b.service(t, b.west, "elsewhere", "web", 80, "10.65.0.10")
			b.export(t, "elsewhere/web", b.west)
		},
		after: "kubectl clusterset unexport elsewhere/web --contexts west\nkubectl --context north delete namespace elsewhere --wait=false",
	},
	{
		name: "an address out of range", round: "services", says: []string{"endpoints-refused east", "endpoints-refused north"},
		do: func(t *testing.T, b *bed) {
			b.shell(t,
				"kubectl --context east -n clusterset-dns annotate --overwrite secret member-west clusterset-dns.github.io/cidrs="+b.pods(b.west))
			b.service(t, b.west, "checked", "c", 80, "192.0.2.1")
			b.export(t, "checked/c", b.west)
		},
		fill:  map[string]string{"<range of that address>": "192.0.2.0/24"},
		after: "kubectl clusterset unexport checked/c --contexts west",
	},
	{
		name: "a preference that is none", round: "services",
		says: []string{"preferences east", "preferences north", "preferences west"},
		do: func(t *testing.T, b *bed) {
			b.apply(t, b.west, "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {namespace: checked, name: f}, "+
				"spec: {exportedAnnotations: {clusterset-dns.github.io/prefer: near est}}}")
		},
		which: "patch serviceexport",
		after: "kubectl clusterset unexport checked/f --contexts west",
	},
	{
		name: "a node without a zone", round: "services", says: []string{"zones north"},
		do: func(t *testing.T, b *bed) {
			b.shell(t, `kubectl --context west -n checked patch service g -p '{"spec":{"trafficDistribution":"PreferSameZone"}}'`)
			b.export(t, "checked/g", b.west)
			b.apply(t, b.north, "{apiVersion: v1, kind: Node, metadata: {name: nowhere}}")
		},
		fill:  map[string]string{"<zone of the node>": "north-a"},
		after: "kubectl --context north delete node nowhere\nkubectl clusterset unexport checked/g --contexts west",
	},
}
