// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// published is a slice of west for the service db of a namespace.
func published(namespace string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "db-west",
			Labels: map[string]string{
				export.LabelManagedBy: export.Manager, export.LabelSliceManagedBy: export.Manager,
				export.LabelService: "db", export.LabelSourceCluster: "west",
			},
			Annotations: map[string]string{export.AnnotationSnapshotPrefix +
				"v1": `{"cluster":"west","service":{"created":"2026-03-01T12:00:00Z","type":"Headless","ipFamilies":["IPv4"]},` +
				`"slice":{"name":"db-1"}}`},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
}

// TestLagLeavesOutWhatIsNotImported counts what a member publishes and this
// cluster lacks, but for namespaces that do not exist here or that the
// controller is told to leave alone.
func TestLagLeavesOutWhatIsNotImported(t *testing.T) {
	for name, test := range map[string]struct {
		denied []string
		want   int
	}{
		"by default":                  {[]string{"kube-*"}, 2},
		"all but one, as for a pilot": {[]string{"kube-*", "team-*"}, 1},
		"kube-public, too, is shared": {nil, 3},
	} {
		f := &facts.Facts{
			ID: "east", DeniedNamespaces: test.denied,
			Namespaces: map[string]*corev1.Namespace{"shop": {}, "team-a": {}, "kube-public": {}},
			Members: []facts.Member{{ID: "west", Published: []*discoveryv1.EndpointSlice{
				published("shop"), published("team-a"), published("kube-public"), published("nowhere"),
			}}},
		}
		if behind := Of(f, "").Members[0].Behind; behind == nil || *behind != test.want {
			t.Errorf("%s: got %v, want %d", name, behind, test.want)
		}
	}
}

// TestPath: a member whose pods are not reached is told apart from one that is silent.
func TestPath(t *testing.T) {
	for path, want := range map[string]string{
		"": "stale", "reachable": "stale", "unreachable": "stale,unreachable", "unproven": "stale,unproven",
	} {
		status := Of(&facts.Facts{ID: "east", Members: []facts.Member{{
			ID: "west", Lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				memberstate.StateAnnotation: "stale", memberstate.PathAnnotation: path,
			}}},
		}}}, "")
		var text strings.Builder
		if err := status.Text(&text, false); err != nil || !strings.Contains(text.String(), " "+want+" ") {
			t.Errorf("path %q: %v\n%s", path, err, text.String())
		}
	}
}

// TestServer: wide output has how a member is read, without the password of its proxy.
func TestServer(t *testing.T) {
	credential, err := member.ParseKubeconfig([]byte(`{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}],
clusters: [{name: c, cluster: {server: "https://west.example:6443", tls-server-name: kubernetes,
  proxy-url: "socks5://user:s3cr3t@proxy.example:1080"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	status := Of(&facts.Facts{ID: "east", Members: []facts.Member{{ID: "west", Credential: credential}}}, "")
	var text strings.Builder
	const want = "https://west.example:6443   kubernetes   socks5://user:xxxxx@proxy.example:1080"
	if err := status.Text(&text, true); err != nil || !strings.Contains(text.String(), want) {
		t.Errorf("%v, want %q in\n%s", err, want, text.String())
	}
}
