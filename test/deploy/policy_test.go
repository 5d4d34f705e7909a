// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

var shared = controlplanetest.Shared(controlplane.Options{Name: "deploy"})

var install sync.Once

// installed is a cluster to which deploy/manifest.yaml and deploy/coredns-rbac.yaml were applied.
func installed(t testing.TB) *controlplane.Cluster {
	t.Helper()
	cluster := shared(t)[0]
	install.Do(func() {
		run(t, "", kubectl(t), "--kubeconfig", kubeconfig(t, cluster), "apply", "--server-side", "--force-conflicts",
			"-f", root+"/deploy/manifest.yaml", "-f", root+"/deploy/coredns-rbac.yaml")
	})
	return cluster
}

// A user is somebody whom the API server is told about by an administrator.
type user struct {
	name   string
	groups []string
}

func account(namespace, name string) (user user) {
	user.name, user.groups = audit.Account(namespace, name)
	return user
}

// as is a client with the rights of a user.
func as(t testing.TB, cluster *controlplane.Cluster, who user) dynamic.Interface {
	t.Helper()
	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: who.name, Groups: who.groups}
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return client
}

// namespaceOf makes a namespace with that prefix for a test.
func namespaceOf(t testing.TB, cluster *controlplane.Cluster, prefix string) string {
	t.Helper()
	namespaces := cluster.Client().CoreV1().Namespaces()
	made, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}},
		metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		if err := namespaces.Delete(context.Background(), made.Name, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			t.Error(err)
		}
	})
	return made.Name
}

// grant binds a ClusterRole to a user in one namespace, or in all where it is empty.
func grant(t testing.TB, cluster *controlplane.Cluster, namespace, role string, who user) {
	t.Helper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who.name}}
	meta := metav1.ObjectMeta{GenerateName: "test-"}
	rbac := cluster.Client().RbacV1()
	if namespace != "" {
		if _, err := rbac.RoleBindings(namespace).Create(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	made, err := rbac.ClusterRoleBindings().Create(t.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		if err := rbac.ClusterRoleBindings().Delete(context.Background(), made.Name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func mcs(resource, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: version, Resource: resource}
}

func newObject(version, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: version, Kind: kind})
	object.SetName(name)
	if kind == "ServiceImport" {
		object.Object["spec"] = map[string]any{"type": "Headless", "ports": []any{}}
	}
	return object
}

// deniedBy is nil where the error is the refusal of that policy, or of RBAC where that is empty.
func deniedBy(err error, policy string) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("got %w, want it forbidden", err)
	}
	if byPolicy := strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'"); byPolicy != (policy != "") {
		return fmt.Errorf("got %w, want the refusal of %q", err, policy)
	}
	return nil
}

const (
	importsPolicy = "clusterset-imports"
	exportsPolicy = "clusterset-denied-namespaces"
)

// TestWhoWritesServiceImports tries it as everybody who might.
func TestWhoWritesServiceImports(t *testing.T) {
	cluster := installed(t)
	team := namespaceOf(t, cluster, "team-")
	// Kubernetes' own role for a namespace's administrator has no right on ServiceImports. Many give cluster-admin in a
	// namespace instead, which has.
	admin, owner, everywhere := user{name: "admin-of-" + team}, user{name: "owner-of-" + team},
		user{name: "everywhere-" + team}
	grant(t, cluster, team, "admin", admin)
	grant(t, cluster, team, "cluster-admin", owner)
	grant(t, cluster, "", "cluster-admin", everywhere)
	controller := account(system, "clusterset-controller")

	// The policy works from soon after it was applied.
	eventually(t, "the policy works", func(ctx context.Context) error {
		_, err := as(t, cluster, owner).Resource(mcs("serviceimports", "v1beta1")).Namespace(team).Create(ctx,
			newObject("v1beta1", "ServiceImport", "early"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return deniedBy(err, importsPolicy)
	})
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		imports := mcs("serviceimports", version)
		for _, test := range []struct {
			who     user
			allowed bool
			policy  string
		}{
			{who: controller, allowed: true},
			{who: everywhere, allowed: true},
			{who: owner, policy: importsPolicy},
			{who: admin, policy: ""},
			{who: account(system, "clusterset-member"), policy: ""},
			{who: account("kube-system", "clusterset-coredns"), policy: ""},
		} {
			client := as(t, cluster, test.who).Resource(imports).Namespace(team)
			_, err := client.Create(t.Context(), newObject(version, "ServiceImport", "web"), metav1.CreateOptions{})
			if test.allowed {
				if err != nil {
					t.Errorf("%s creates %s: %v", test.who.name, version, err)
				}
			} else if err := deniedBy(err, test.policy); err != nil {
				t.Errorf("%s creates %s: %v", test.who.name, version, err)
			}
			// Update the one that the controller made.
			current, err := cluster.Dynamic().Resource(imports).Namespace(team).Get(t.Context(), "web",
				metav1.GetOptions{})
			must(t, err)
			current.SetAnnotations(map[string]string{"by": test.who.name})
			for _, subresource := range [][]string{nil, {"status"}} {
				updated, err := client.Update(t.Context(), current, metav1.UpdateOptions{}, subresource...)
				if test.allowed {
					if err != nil {
						t.Errorf("%s updates %s %v: %v", test.who.name, version, subresource, err)
						continue
					}
					current = updated
				} else if err := deniedBy(err, test.policy); err != nil {
					t.Errorf("%s updates %s %v: %v", test.who.name, version, subresource, err)
				}
			}
			if test.who.name == everywhere.name || !test.allowed {
				_, err = client.Patch(t.Context(), "web", types.MergePatchType,
					[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
				if test.allowed != (err == nil) {
					t.Errorf("%s patches %s: %v", test.who.name, version, err)
				}
			}
			if test.who.name == controller.name {
				// The next one creates it again.
				if err := client.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
					t.Errorf("%s deletes %s: %v", test.who.name, version, err)
				}
			}
		}
		// Deleting is free for every account with the right, in the way that leaves work to the garbage collector, too.
		foreground := metav1.DeletePropagationForeground
		client := as(t, cluster, owner).Resource(imports).Namespace(team)
		if err := client.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
			t.Errorf("%s deletes: %v", owner.name, err)
		}
		eventually(t, "the import is gone", func(ctx context.Context) error {
			_, err := client.Get(ctx, "web", metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
}

// TestNamespacesWithImportsGo deletes a namespace with imports, exports and objects of the controller in it, of which some
// wait for the garbage collector.
func TestNamespacesWithImportsGo(t *testing.T) {
	cluster := installed(t)
	team := namespaceOf(t, cluster, "team-")
	for _, kind := range []struct{ kind, resource string }{
		{"ServiceImport", "serviceimports"}, {"ServiceExport", "serviceexports"},
	} {
		for i := range 3 {
			object := newObject("v1beta1", kind.kind, fmt.Sprintf("s%d", i))
			if i == 0 {
				object.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
			}
			if _, err := cluster.Dynamic().Resource(mcs(kind.resource, "v1beta1")).Namespace(team).Create(t.Context(),
				object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, object := range []owned{
		serviceOf(t, "derived", map[string]string{export.LabelManagedBy: export.Manager}),
		sliceOf(t, "copy", map[string]string{export.LabelSliceManagedBy: export.Manager}),
	} {
		object.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
		_, err := cluster.Dynamic().Resource(object.GroupVersionResource).Namespace(team).Create(t.Context(),
			object.Unstructured, metav1.CreateOptions{})
		must(t, err)
	}
	namespaces := cluster.Client().CoreV1().Namespaces()
	must(t, namespaces.Delete(t.Context(), team, metav1.DeleteOptions{}))
	eventually(t, "the namespace is gone", func(ctx context.Context) error {
		namespace, err := namespaces.Get(ctx, team, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w %v", err, namespace.Status)
		}
		return nil
	})
}

// TestExportsOfDeniedNamespaces tries to export from namespaces that take no part in the set.
func TestExportsOfDeniedNamespaces(t *testing.T) {
	cluster := installed(t)
	everywhere := user{name: "administrator", groups: []string{"system:masters"}}
	team, denied := namespaceOf(t, cluster, "team-"), namespaceOf(t, cluster, "kube-test-")
	export := func(ctx context.Context, namespace, version string, dry ...string) error {
		_, err := as(t, cluster, everywhere).Resource(mcs("serviceexports", version)).Namespace(namespace).
			Create(ctx, newObject(version, "ServiceExport", "web-"+version), metav1.CreateOptions{DryRun: dry})
		return err
	}
	eventually(t, "the policy works", func(ctx context.Context) error {
		return deniedBy(export(ctx, "kube-system", "v1beta1", metav1.DryRunAll), exportsPolicy)
	})
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		for _, namespace := range []string{"kube-system", "kube-public", denied} {
			if err := deniedBy(export(t.Context(), namespace, version), exportsPolicy); err != nil {
				t.Errorf("export %s from %s: %v", version, namespace, err)
			}
		}
		for _, namespace := range []string{team, "default"} {
			if err := export(t.Context(), namespace, version, metav1.DryRunAll); err != nil {
				t.Errorf("export %s from %s: %v", version, namespace, err)
			}
		}
	}
}
