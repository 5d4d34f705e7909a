// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// installed is a store with an installation in namespace clusterset-dns.
func installed(t *testing.T) *store {
	t.Helper()
	s := newStore(t)
	o := s.options(t, &bytes.Buffer{})
	o.ID, o.Image = "east", "registry.example.org/controller:v9"
	if err := Install(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.writes = nil
	return s
}

// TestWrongNamespace changes nothing: neither the rights nor the objects of a
// controller in another namespace.
func TestWrongNamespace(t *testing.T) {
	s := installed(t)
	s.put(secret, "{kind: Secret, apiVersion: v1, metadata: {name: member-west, namespace: clusterset-dns, "+
		"labels: {clusterset-dns.github.io/cluster: west}}}")
	s.put("/api/v1/namespaces/shop/services/derived-1", "{kind: Service, apiVersion: v1, metadata: {name: derived-1, "+
		"namespace: shop, labels: {app.kubernetes.io/managed-by: clusterset-controller.clusterset-dns.github.io}}}")
	o := s.options(t, &bytes.Buffer{})
	o.Cluster.Namespace, o.ID, o.Image = "mistyped", "east", "registry.example.org/controller:v9"
	for name, err := range map[string]error{
		"install": Install(t.Context(), o), "uninstall": Uninstall(t.Context(), o, false),
	} {
		if err == nil || !strings.Contains(err.Error(), "use --system-namespace clusterset-dns") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(s.writes) > 0 {
		t.Errorf("changed %q", s.writes)
	}
}

// TestUninstallAgain ends what was begun, with and without the binding.
func TestUninstallAgain(t *testing.T) {
	const binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/clusterset-controller"
	for _, gone := range [][]string{{deployment, namespace}, {deployment, binding}} {
		s := installed(t)
		for _, at := range gone {
			if s.objects[at] == nil {
				t.Fatalf("%s is not there", at)
			}
			delete(s.objects, at)
		}
		if err := Uninstall(t.Context(), s.options(t, &bytes.Buffer{}), true); err != nil || len(s.objects) > 0 {
			t.Errorf("without %q: %v, %d objects remain", gone, err, len(s.objects))
		}
	}
}

// TestForeignNamespaceStays holds that a namespace of the user stays as it is,
// also if it has the label of what is installed.
func TestForeignNamespaceStays(t *testing.T) {
	for _, labels := range []string{"{}", "{app.kubernetes.io/name: clusterset-dns}"} {
		s, out := newStore(t), &bytes.Buffer{}
		s.put(namespace, "{kind: Namespace, apiVersion: v1, metadata: {name: clusterset-dns, labels: "+labels+"}}")
		o := s.options(t, out)
		o.ID, o.Image = "east", "registry.example.org/controller:v9"
		if err := errors.Join(Install(t.Context(), o), Uninstall(t.Context(), o, false)); err != nil {
			t.Fatal(err)
		}
		if s.objects[namespace] == nil || slices.Contains(s.writes, "PATCH "+namespace) || s.objects[deployment] != nil ||
			!strings.Contains(out.String(), "Namespace clusterset-dns was not installed by this command: it stays") {
			t.Errorf("with labels %s: %q\n%s", labels, s.writes, out)
		}
	}
}

// TestForeignCRDStays deletes only the CRD that the command installed.
func TestForeignCRDStays(t *testing.T) {
	const imports = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/serviceimports.multicluster.x-k8s.io"
	s, out := newStore(t), &bytes.Buffer{}
	s.put(crd, "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, "+
		"metadata: {name: serviceexports.multicluster.x-k8s.io}}")
	s.put("/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports/db",
		"{kind: ServiceExport, apiVersion: multicluster.x-k8s.io/v1beta1, metadata: {name: db, namespace: shop}}")
	o := s.options(t, out)
	o.ID, o.Image = "east", "registry.example.org/controller:v9"
	if err := Install(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := Uninstall(t.Context(), o, true); err != nil || s.objects[crd] == nil || s.objects[imports] != nil ||
		!strings.Contains(out.String(), "serviceexports.multicluster.x-k8s.io was not installed by this command: it stays") ||
		!strings.Contains(out.String(), "1 ServiceExports stay") {
		t.Errorf("got %v\n%s", err, out)
	}
}
