// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// TestGather reads a cluster whose controller answers, and one whose controller never ran. Of the two ConfigMaps of NodeLocal
// DNSCache, one does not pass the zone on. In the cluster that answers, the CNI assigns other ranges than the nodes have.
func TestGather(t *testing.T) {
	id := "heard"
	heartbeat := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mcs", Name: cluster.HeartbeatLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &id},
	}
	cache := func(name, corefile string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: setup.CoreDNSNamespace, Name: name}, Data: map[string]string{setup.CorefileKey: corefile},
		}
	}
	const hides = "cluster.local:53 {\n bind 169.254.20.10\n forward . 10.96.0.2\n}\n.:53 {\n forward . /etc/resolv.conf\n}\n"
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid"}}
	of := func(objects ...runtime.Object) *cluster.Cluster {
		client := fake.NewClientset(append(objects, system, cache("node-local-dns", hides+"clusterset.local {\n forward . 10.96.0.2\n}\n"),
			cache("nodelocaldns", hides), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "mcs", Name: memberAccount}}, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.64.0.7/24", "none"}},
			})...)
		client.Resources = []*metav1.APIResourceList{{GroupVersion: "multicluster.x-k8s.io/v1alpha1"}}
		return &cluster.Cluster{
			Context: "a", Namespace: "mcs", Config: &rest.Config{Host: "https://a"}, Kube: client,
		}
	}
	refused := errors.New("refused")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.9.0.1"}}}}
	set := Gather(t.Context(), []*cluster.Cluster{of(), of(heartbeat), of(heartbeat, pod)}, []Status{{Err: refused}, {Err: refused}, {Cluster: &state.Cluster{Cluster: "answered", Network: "b"}}}, "clusterset.local")
	for i, want := range []Cluster{
		{Cluster: &cluster.Cluster{}, Unidentified: cluster.ErrNeverRan, StateError: refused},
		{Cluster: &cluster.Cluster{ID: "heard"}, StateError: refused},
		{Cluster: &cluster.Cluster{ID: "answered", Network: "b"}},
	} {
		got := set.Clusters[i]
		if got.Unreachable != nil || got.ID != want.ID || got.Network != want.Network || got.UID != "uid" || got.Namespace != "mcs" ||
			got.Config.Host != "https://a" || !errors.Is(got.Unidentified, want.Unidentified) || !errors.Is(got.StateError, want.StateError) ||
			got.MCSVersion != "v1alpha1" || fmt.Sprint(got.PodCIDRs) != []string{"[10.64.0.0/24]", "[10.64.0.0/24]", "[]"}[i] ||
			got.DNSError == nil || !slices.Equal(got.NodeCaches, []string{"nodelocaldns"}) ||
			got.CoreDNS != nil || got.RightsError == nil { // this client takes no reviews
			t.Errorf("got %+v", got)
		}
	}
}

// TestLost reads the schemas of the CRDs of the chart, and of older ones, which lack a field or a kind.
func TestLost(t *testing.T) {
	const fields, distribution = "exportedAnnotations of ServiceExport", "trafficDistribution of ServiceImport"
	for lacks, want := range map[string][]string{
		"": nil, `"exportedAnnotations":`: {fields}, `"trafficDistribution":`: {distribution}, `"kind":"ServiceImport"`: nil,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, plural := range []string{"serviceexports", "serviceimports"} {
				text, err := os.ReadFile("../../../deploy/chart/files/crds/multicluster.x-k8s.io_" + plural + ".yaml")
				document, failed := yaml.YAMLToJSON(text)
				if err = errors.Join(err, failed); err != nil || r.URL.Path != "/openapi/v3/apis/multicluster.x-k8s.io/v1beta1" {
					t.Errorf("%v; asked for %s", err, r.URL.Path)
				}
				fmt.Fprintln(w, strings.ReplaceAll(string(document), cmp.Or(lacks, "none"), `"other":`))
			}
		}))
		from, err := cluster.FromConfig(&rest.Config{Host: server.URL}, "a", "mcs")
		must(t, err)
		c := &Cluster{Cluster: from, MCSVersion: "v1beta1"}
		got, err := c.lost(t.Context())
		server.Close()
		if _, failed := c.lost(t.Context()); err != nil || failed == nil || !slices.Equal(got, want) {
			t.Errorf("without %s: got %q, %v, want %q; without a server, %v", lacks, got, err, want, failed)
		}
	}
}

// TestLook reads the version and the clock of an API server, and accepts that the clock is unknown.
func TestLook(t *testing.T) {
	var created metav1.Time
	client := fake.NewClientset()
	client.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.36.0"}
	client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}}, nil
	})
	c := Cluster{Cluster: &cluster.Cluster{Kube: client}}
	if c.look(t.Context()); c.Version != "v1.36.0" || c.Ahead != nil {
		t.Errorf("got %q, %v", c.Version, c.Ahead)
	}
	created = metav1.NewTime(time.Now().Add(-time.Hour))
	if c.look(t.Context()); c.Ahead == nil || (*c.Ahead+time.Hour).Abs() > time.Minute {
		t.Errorf("got %v", c.Ahead)
	}
}
