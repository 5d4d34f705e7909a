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
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
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

// TestOfSet: what belongs to other cluster sets is left out, also what no controller made in their namespaces.
func TestOfSet(t *testing.T) {
	for _, set := range []export.Set{"", "blue"} {
		f := &Facts{Set: set, Namespaces: map[string]*corev1.Namespace{}}
		for _, of := range []export.Set{"", "blue", "green"} {
			namespace := "of-" + string(of)
			f.Namespaces[namespace] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: namespace, Labels: map[string]string{export.LabelSet: string(of)},
			}}
			f.Exports = append(f.Exports, v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})
			for _, manager := range []export.Set{"", "blue", "green"} {
				meta := metav1.ObjectMeta{Namespace: namespace, Name: "by-" + string(manager)}
				imported, derived := v1beta1.ServiceImport{ObjectMeta: meta}, corev1.Service{ObjectMeta: meta}
				slice := &discoveryv1.EndpointSlice{ObjectMeta: meta}
				for _, object := range []metav1.Object{&imported, &derived, slice} {
					manager.Mark(object)
				}
				f.Imports, f.Services, f.Slices = append(f.Imports, imported), append(f.Services, derived), append(f.Slices, slice)
			}
			meta := metav1.ObjectMeta{Namespace: namespace, Name: "by-nobody"}
			f.Imports = append(f.Imports, v1beta1.ServiceImport{ObjectMeta: meta})
			f.Services = append(f.Services, corev1.Service{ObjectMeta: meta})
			f.Slices = append(f.Slices, &discoveryv1.EndpointSlice{ObjectMeta: meta})
		}
		f.ofSet()
		want := map[string]bool{"of-" + string(set) + "/by-nobody": true}
		for _, of := range []string{"", "blue", "green"} {
			want["of-"+of+"/by-"+string(set)] = true
		}
		if len(f.Exports) != 1 || f.Exports[0].Namespace != "of-"+string(set) {
			t.Errorf("%s: exports %v", set, f.Exports)
		}
		for kind, objects := range map[string][]metav1.Object{
			"imports": objects(pointers(f.Imports)), "services": objects(pointers(f.Services)), "slices": objects(f.Slices),
		} {
			if len(objects) != len(want) {
				t.Errorf("%s: %d %s, want %d", set, len(objects), kind, len(want))
			}
			for _, object := range objects {
				if !want[object.GetNamespace()+"/"+object.GetName()] {
					t.Errorf("%s: %s %s/%s", set, kind, object.GetNamespace(), object.GetName())
				}
			}
		}
		if !f.Takes("of-"+string(set)) || f.Takes("of-green") {
			t.Errorf("%s takes of-green: %t", set, f.Takes("of-green"))
		}
	}
}

func objects[T metav1.Object](list []T) (all []metav1.Object) {
	for _, each := range list {
		all = append(all, each)
	}
	return all
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
