// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"encoding/pem"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

const system = "clusterset-dns"

// joined is a cluster that has the credentials of members.
func joined(id string, members ...string) *cluster.Cluster {
	client := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("uid-of-" + id)}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Heartbeat},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(id)},
		},
	)
	for _, other := range members {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: system, Name: "member-" + other,
			Labels: map[string]string{names.ClusterLabel: other},
		}}
		if err := client.Tracker().Add(secret); err != nil {
			panic(err)
		}
	}
	writes := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	writes.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &unstructured.Unstructured{}, nil
	})
	return &cluster.Cluster{Context: "admin@" + id, Namespace: system, Kube: client, Dynamic: writes}
}

// TestForgottenContextChangesNothing holds that leave names the clusters of the
// set that are not selected, and changes nothing.
func TestForgottenContextChangesNothing(t *testing.T) {
	set := func() map[string]*cluster.Cluster {
		return map[string]*cluster.Cluster{
			"east": joined("east", "north", "west"),
			"west": joined("west", "east", "north"), "north": joined("north", "east", "west"),
		}
	}
	for name, test := range map[string]struct {
		target   string
		contexts []string
		partial  bool
		missing  string // empty if it is done
	}{
		"all":                             {"west", []string{"east", "west", "north"}, false, ""},
		"by the name of a context":        {"admin@west", []string{"east", "west", "north"}, false, ""},
		"the current context alone":       {"north", []string{"east"}, false, "north, west"},
		"a forgotten one":                 {"west", []string{"east", "west"}, false, "north"},
		"the one that leaves":             {"west", []string{"east", "north"}, false, "west"},
		"a forgotten one, and that is ok": {"west", []string{"east"}, true, ""},
	} {
		for what, do := range map[string]func(Options) error{
			"leave": func(o Options) error { return Leave(t.Context(), o, test.target) },
		} {
			o := Options{Partial: test.partial, Teller: progress.Teller{
				Out: io.Discard, Results: io.Discard,
				Timeout: time.Minute,
			}}
			clusters := set()
			for _, id := range test.contexts {
				o.Clusters = append(o.Clusters, clusters[id])
			}
			err := do(o)
			if test.missing == "" {
				if err != nil {
					t.Errorf("%s, %s: %v", what, name, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), "nothing was changed: the set also has "+test.missing+
				",") || !strings.Contains(err.Error(), "--partial") {
				t.Errorf("%s, %s: got %v", what, name, err)
			}
			for _, c := range o.Clusters {
				for _, action := range c.Kube.(*fake.Clientset).Actions() {
					if verb := action.GetVerb(); verb != "get" && verb != "list" {
						t.Errorf("%s, %s: %s of %s", what, name, verb, action.GetResource().Resource)
					}
				}
			}
		}
	}
}

// TestClusterThatNobodyKnows is told from a context that was forgotten.
func TestClusterThatNobodyKnows(t *testing.T) {
	o := Options{
		Clusters: []*cluster.Cluster{joined("east", "west")},
		Teller:   progress.Teller{Out: io.Discard, Results: io.Discard, Timeout: time.Minute},
	}
	for _, err := range []error{Leave(t.Context(), o, "nobody"), Drain(t.Context(), o, "nobody", true)} {
		if err == nil || !strings.HasPrefix(err.Error(), "nobody: ") {
			t.Errorf("got %v", err)
		}
	}
}

// TestDrain: a cluster that is selected says itself that it is drained; otherwise the Secrets of the others say so. Undrain
// reverts both.
func TestDrain(t *testing.T) {
	east, west := joined("east", "west"), joined("west", "east")
	var said bytes.Buffer
	teller := progress.Teller{Out: io.Discard, Results: &said, Timeout: time.Minute}
	for _, test := range []struct {
		clusters   []*cluster.Cluster
		drain      bool
		east, west string // the annotations of the Secret of west in east, and of the namespace in west
		says       string
	}{
		{[]*cluster.Cluster{east, west}, true, "", "true", "west is drained in all clusters of the default cluster set\n"},
		{[]*cluster.Cluster{east}, true, "true", "true", "east: the endpoints of west are drained in the default cluster set\n"},
		{
			[]*cluster.Cluster{east, west}, false, "", "",
			"west is no longer drained in all clusters of the default cluster set\n" +
				"east: the endpoints of west are no longer drained in the default cluster set\n",
		},
	} {
		said.Reset()
		if err := Drain(t.Context(), Options{Clusters: test.clusters, Teller: teller}, "west", test.drain); err != nil {
			t.Fatal(err)
		}
		secret, err := east.Kube.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
		if err != nil || secret.Annotations[names.Drain] != test.east {
			t.Errorf("east: %v, %v", secret.Annotations, err)
		}
		namespace, err := west.Kube.CoreV1().Namespaces().Get(t.Context(), system, metav1.GetOptions{})
		if err != nil || namespace.Annotations[names.Drain] != test.west {
			t.Errorf("west: %v, %v", namespace.Annotations, err)
		}
		if said.String() != test.says {
			t.Errorf("it says %q", said.String())
		}
	}
}

// TestOutputNamesTheSet: a forgotten --system-namespace selects the default set.
func TestOutputNamesTheSet(t *testing.T) {
	for set, want := range map[string]string{"": "the default cluster set", "blue": "cluster set blue"} {
		for what, do := range map[string]func(Options) error{
			"leave":   func(o Options) error { return Leave(t.Context(), o, "west") },
			"drain":   func(o Options) error { return Drain(t.Context(), o, "west", true) },
			"undrain": func(o Options) error { return Drain(t.Context(), o, "west", false) },
		} {
			var said bytes.Buffer
			o := Options{
				Clusters: []*cluster.Cluster{ofSet(joined("east", "west"), set), ofSet(joined("west", "east"), set)},
				Teller:   progress.Teller{Out: io.Discard, Results: &said, Timeout: time.Minute},
			}
			if err := do(o); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(said.String()) {
				if !strings.HasSuffix(line, want+"\n") {
					t.Errorf("%s of %s says %q", what, want, line)
				}
			}
			if strings.Count(said.String(), want) < map[string]int{"leave": 2, "drain": 1, "undrain": 1}[what] {
				t.Errorf("%s of %s says %q", what, want, said.String())
			}
		}
	}
}

// TestJoinNamesTheSet: a forgotten --system-namespace selects the default set.
func TestJoinNamesTheSet(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for set, want := range map[string]string{"": "the default cluster set", "blue": "cluster set blue"} {
		var said bytes.Buffer
		o := Options{DryRun: true, Teller: progress.Teller{Out: io.Discard, Results: &said, Timeout: time.Minute}}
		for _, c := range []*cluster.Cluster{ofSet(joined("east"), set), ofSet(joined("west"), set)} {
			client := c.Kube.(*fake.Clientset)
			client.PrependReactor("create", "subjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authorizationv1.SubjectAccessReview{
					Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true},
				}, nil
			})
			if err := client.Tracker().Add(&corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: manifest.MemberAccount},
			}); err != nil {
				t.Fatal(err)
			}
			c.Config = &rest.Config{
				Host: "https://" + c.Context + ":6443", TLSClientConfig: rest.TLSClientConfig{CAData: authority},
			}
			o.Clusters = append(o.Clusters, c)
		}
		if err := Join(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		wanted := "west would get a credential to read east in " + want + " (dry run)\n" +
			"east would get a credential to read west in " + want + " (dry run)\n"
		if said.String() != wanted {
			t.Errorf("got\n%swant\n%s", said.String(), wanted)
		}
		for _, c := range o.Clusters {
			for _, action := range c.Dynamic.(*dynamicfake.FakeDynamicClient).Actions() {
				patch := action.(clienttesting.PatchActionImpl)
				if options := patch.GetPatchOptions(); len(options.DryRun) == 0 {
					t.Errorf("a dry run writes %s %s", patch.GetResource().Resource, patch.GetName())
				}
			}
		}
	}
}

// ofSet makes the controller of a cluster one of a set.
func ofSet(c *cluster.Cluster, set string) *cluster.Cluster {
	client := c.Kube.(*fake.Clientset)
	renewed := metav1.NowMicro()
	if err := client.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: system, Name: names.Heartbeat, Annotations: map[string]string{
				names.LabelSet: set,
			},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(strings.TrimPrefix(c.Context, "admin@")), RenewTime: &renewed},
	}, system); err != nil {
		panic(err)
	}
	return c
}
