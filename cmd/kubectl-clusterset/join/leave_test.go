// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

const system = "clusterset-dns"

// joined is a cluster that has the credentials of members.
func joined(id string, members ...string) *cluster.Cluster {
	client := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("uid-of-" + id)}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: member.HeartbeatLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(id)},
		},
	)
	for _, other := range members {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: system, Name: "member-" + other,
			Labels: map[string]string{member.ClusterLabel: other},
		}}
		if err := client.Tracker().Add(secret); err != nil {
			panic(err)
		}
	}
	return &cluster.Cluster{Context: "admin@" + id, Namespace: system, Kube: client}
}

// TestForgottenContextChangesNothing holds that leave, drain and undrain name
// the clusters of the set that are not selected, and change nothing.
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
			"leave":   func(o Options) error { return Leave(t.Context(), o, test.target) },
			"drain":   func(o Options) error { return Drain(t.Context(), o, test.target, true) },
			"undrain": func(o Options) error { return Drain(t.Context(), o, test.target, false) },
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

// TestDrainMarksEveryCluster has the drained cluster and the others say so.
func TestDrainMarksEveryCluster(t *testing.T) {
	east, west := joined("east", "west"), joined("west", "east")
	var said bytes.Buffer
	o := Options{Clusters: []*cluster.Cluster{east, west}, Teller: progress.Teller{
		Out: io.Discard, Results: &said,
		Timeout: time.Minute,
	}}
	if err := Drain(t.Context(), o, "west", true); err != nil {
		t.Fatal(err)
	}
	secret, err := east.Kube.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
	if err != nil || secret.Annotations[memberstate.AnnotationDrain] != "true" {
		t.Errorf("east: %v, %v", secret.Annotations, err)
	}
	namespace, err := west.Kube.CoreV1().Namespaces().Get(t.Context(), system, metav1.GetOptions{})
	if err != nil || namespace.Annotations[memberstate.AnnotationDrain] != "true" {
		t.Errorf("west: %v, %v", namespace.Annotations, err)
	}
	if want := "east: the endpoints of west are drained\nwest: the local endpoints are drained\n"; said.String() != want {
		t.Errorf("it says %q", said.String())
	}
}
