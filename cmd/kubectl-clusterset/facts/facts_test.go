// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller"
)

// TestDeniedNamespacesAreThoseOfTheController reads its flag as it does itself.
func TestDeniedNamespacesAreThoseOfTheController(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"the default": {[]string{"--cluster-id=east"}, controller.DefaultDeniedNamespaces},
		"others": {
			[]string{"--cluster-id", "east", "--denied-namespaces=kube-*,team-?", "-v=2"},
			[]string{"kube-*", "team-?"},
		},
		"none": {[]string{"--denied-namespaces="}, []string{}},
		"more by extraArgs": {[]string{
			"--denied-namespaces=kube-*", "--leader-elect=false",
			"--denied-namespaces", "shop",
		}, []string{"kube-*", "shop"}},
		"a Deployment of another": {nil, controller.DefaultDeniedNamespaces},
	} {
		client := fake.NewClientset()
		if test.args != nil {
			client = fake.NewClientset(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "mcs", Name: "clusterset-controller"},
				Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: test.args}}}}},
			})
		}
		f := &Facts{}
		if err := f.controller(t.Context(), &cluster.Cluster{Namespace: "mcs", Kube: client}, ""); err != nil ||
			!slices.Equal(f.DeniedNamespaces, test.want) {
			t.Errorf("%s: got %q, %v, want %q", name, f.DeniedNamespaces, err, test.want)
		}
	}
	for want, args := range map[string][]string{"[*]": {"-v=2"}, "[]": {"--accept="}, "[shop a/b]": {"--accept=shop,a/b"}} {
		_, accepted, _ := flagsOf(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: args}}},
		}}})
		if got := fmt.Sprint(accepted); got != want {
			t.Errorf("%v accepts %s, want %s", args, got, want)
		}
	}
	f := &Facts{DeniedNamespaces: []string{"team-*"}, Namespaces: map[string]*corev1.Namespace{
		"team-a":      {},
		"kube-public": {},
	}}
	for namespace, want := range map[string]bool{"team-a": false, "kube-public": true, "nowhere": false} {
		if got := f.Takes(namespace); got != want {
			t.Errorf("%s: got %v", namespace, got)
		}
	}
}

func TestVersionThatIsForbiddenIsSaid(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	c, err := cluster.FromConfig(&rest.Config{Host: server.URL}, "east", "clusterset-dns")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Gather(t.Context(), c, ""); err == nil ||
		!strings.Contains(err.Error(), "denies GET /version to this user (403 Forbidden)") {
		t.Errorf("got %v", err)
	}
}
