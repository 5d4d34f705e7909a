// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

var shared = controlplanetest.Shared(controlplane.Options{Name: "deploy", APIServerArgs: audit.Args()})

var install sync.Once

// installed returns a cluster to which deploy/manifest.yaml and deploy/coredns-rbac.yaml were applied.
func installed(t testing.TB) *controlplane.Cluster {
	cluster := shared(t)[0]
	install.Do(func() {
		ctl(t, cluster, "", "apply", "--server-side", "--force-conflicts", "-f", root+"/deploy/manifest.yaml", "-f", root+"/deploy/coredns-rbac.yaml")
	})
	return cluster
}

type user = audit.User

// namespaceOf creates a namespace with this prefix for a test.
func namespaceOf(t testing.TB, cluster *controlplane.Cluster, prefix string) string {
	made, err := cluster.Client().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}, metav1.CreateOptions{})
	must(t, err)
	return made.Name
}

// grant binds a ClusterRole to a user in a namespace; empty means all namespaces.
func grant(t testing.TB, cluster *controlplane.Cluster, namespace, role string, who user) {
	args := []string{"create", "clusterrolebinding", who.UserName}
	if namespace != "" {
		args = []string{"create", "rolebinding", who.UserName, "--namespace", namespace}
	}
	ctl(t, cluster, "", append(args, "--clusterrole", role, "--user", who.UserName)...)
}

// deniedBy returns nil if the error is a refusal by this policy; empty means by RBAC.
func deniedBy(err error, policy string) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("got %w, want it forbidden", err)
	}
	if byPolicy := strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'"); byPolicy != (policy != "") {
		return fmt.Errorf("got %w, want the refusal of %q", err, policy)
	}
	return nil
}

// An object is a resource that the policies restrict.
type object = *unstructured.Unstructured

const (
	importsPolicy    = "clusterset-imports"
	exportsPolicy    = "clusterset-denied-namespaces"
	controllerPolicy = "clusterset-controller"
)

var (
	dry = []string{metav1.DryRunAll}
	// ours are the labels of Services and EndpointSlices of the controller.
	ours = map[string]string{export.LabelManagedBy: export.Manager, export.LabelSliceManagedBy: export.Manager}
)

func serviceOf(name string, labels map[string]string) object {
	return objectOf("v1", "Service", name, labels, "spec", map[string]any{"ports": []any{map[string]any{"port": int64(80)}}})
}

func sliceOf(name string, labels map[string]string) object {
	all := objectOf("discovery.k8s.io/v1", "EndpointSlice", name, labels, "addressType", "IPv4")
	all.Object["endpoints"] = []any{map[string]any{"addresses": []any{"10.0.0.1"}}}
	return all
}

func objectOf(version, kind, name string, labels map[string]string, field string, value any) object {
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, field: value}}
	made.SetName(name)
	made.SetLabels(labels)
	return made
}

// resourceOf returns a client for the resource of an object in a namespace, with the rights of a user.
func resourceOf(t testing.TB, of object, cluster *controlplane.Cluster, who user, namespace string) dynamic.ResourceInterface {
	config := cluster.Config()
	config.Impersonate = who
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	resource, _ := meta.UnsafeGuessKindToResource(of.GroupVersionKind())
	return client.Resource(resource).Namespace(namespace)
}

// An attempt is a list of operations of a user on an object: create another one, update it and its status, and delete it.
type attempt struct {
	what      string
	who       user
	namespace string
	object    object
	change    func(object) // makes the update
	// denied maps operations to the policy that denies them; empty means RBAC. Other operations are allowed.
	denied map[string]string
}

// try creates the object as an administrator, tries each operation as a dry run, and deletes the object.
func (a attempt) try(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	all := resourceOf(t, a.object, cluster, user{}, a.namespace)
	existing, err := all.Create(t.Context(), a.object.DeepCopy(), metav1.CreateOptions{})
	must(t, err)
	client := resourceOf(t, a.object, cluster, a.who, a.namespace)
	results := map[string]error{}
	created := a.object.DeepCopy()
	created.SetName(a.object.GetName() + "-2")
	_, results["create"] = client.Create(t.Context(), created, metav1.CreateOptions{DryRun: dry})
	a.change(existing)
	_, results["update"] = client.Update(t.Context(), existing, metav1.UpdateOptions{DryRun: dry})
	if existing.GetKind() == "ServiceImport" {
		_, results["status"] = client.Update(t.Context(), existing, metav1.UpdateOptions{DryRun: dry}, "status")
	}
	results["delete"] = client.Delete(t.Context(), a.object.GetName(), metav1.DeleteOptions{DryRun: dry})
	must(t, all.Delete(t.Context(), a.object.GetName(), metav1.DeleteOptions{}))
	for operation, err := range results {
		if policy, denied := a.denied[operation]; denied {
			err = deniedBy(err, policy)
		}
		if err != nil {
			t.Errorf("%s: %s of %s: %v", a.who.UserName, operation, a.what, err)
		}
	}
}

func annotate(it object) { it.SetAnnotations(map[string]string{"a": "b"}) }
func unlabel(it object)  { it.SetLabels(nil) }
func adopt(it object)    { it.SetLabels(ours) }

// by maps each operation to the policy that denies it.
func by(policy string, operations ...string) map[string]string {
	denied := map[string]string{}
	for _, operation := range operations {
		denied[operation] = policy
	}
	return denied
}

// TestWhoWritesObjectsOfTheController tries to write imports, to redirect an imported name, and to publish without a
// ServiceExport, as each kind of user.
func TestWhoWritesObjectsOfTheController(t *testing.T) {
	cluster := installed(t)
	team := namespaceOf(t, cluster, "team-")
	// Kubernetes' role admin for a namespace grants nothing on ServiceImports. Many organizations bind cluster-admin in
	// a namespace instead, which does.
	admin, owner, everywhere := user{UserName: "admin-of-" + team}, user{UserName: "owner-of-" + team}, user{UserName: "everywhere-" + team}
	grant(t, cluster, team, "admin", admin)
	grant(t, cluster, team, "cluster-admin", owner)
	grant(t, cluster, "", "cluster-admin", everywhere)
	controller, dns := audit.Account(system, "clusterset-controller"), audit.Account("kube-system", "clusterset-coredns")
	collector, namespaces := audit.Account("kube-system", "generic-garbage-collector"), audit.Account("kube-system", "namespace-controller")
	service, slice := serviceOf("derived", ours), sliceOf("copy", ours)
	published := sliceOf("published", map[string]string{export.LabelService: "web", export.LabelSourceCluster: "east"})
	handMade := sliceOf("hand-made", map[string]string{export.LabelService: "web"})
	other := serviceOf("web", map[string]string{export.LabelManagedBy: "Helm"})
	denied := by(importsPolicy, "create", "update", "delete")
	eventually(t, "the policy works", func(ctx context.Context) error {
		_, err := resourceOf(t, service, cluster, owner, team).Create(ctx, service.DeepCopy(), metav1.CreateOptions{DryRun: dry})
		return deniedBy(err, importsPolicy)
	})
	attempts := []attempt{
		{"a derived Service", owner, team, service, annotate, denied},
		{"the label of a derived Service", owner, team, service, unlabel, denied},
		{"a copy", owner, team, slice, annotate, denied},
		{"a published slice", owner, team, published, annotate, denied},
		{"a hand-made slice", owner, team, handMade, annotate, nil},
		{"a Service", owner, team, other, annotate, nil},
		{"a derived Service", controller, team, service, annotate, nil},
		{"a copy", controller, team, slice, annotate, nil},
		{"a derived Service", collector, team, service, annotate, by("", "create")},
		{"a copy", collector, team, slice, annotate, by("", "create")},
		{"a derived Service", namespaces, team, service, annotate, by("", "create", "update")},
		{"a copy", namespaces, team, slice, annotate, by("", "create", "update")},
	}
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		what, imported := "an import "+version, objectOf("multicluster.x-k8s.io/"+version, "ServiceImport", "web", nil,
			"spec", map[string]any{"type": "Headless", "ports": []any{}})
		attempts = append(attempts,
			attempt{what, controller, team, imported, annotate, nil},
			attempt{what, everywhere, team, imported, annotate, nil},
			attempt{what, owner, team, imported, annotate, by(importsPolicy, "create", "update", "status")}, // may delete
			attempt{what, admin, team, imported, annotate, by("", "create", "update", "status", "delete")},
			attempt{what, dns, team, imported, annotate, by("", "create", "update", "status", "delete")},
			attempt{what, collector, team, imported, annotate, by("", "create")},
			attempt{what, namespaces, team, imported, annotate, by("", "create", "update", "status")})
	}
	for _, each := range attempts {
		each.try(t, cluster)
	}
}

// TestTheControllerIsConfined tries operations as the controller that RBAC cannot deny to it.
func TestTheControllerIsConfined(t *testing.T) {
	cluster := installed(t)
	team, denied := namespaceOf(t, cluster, "team-"), namespaceOf(t, cluster, "kube-test-")
	controller := audit.Account(system, "clusterset-controller")
	all := by(controllerPolicy, "create", "update", "delete")
	eventually(t, "the policy works", func(ctx context.Context) error {
		return deniedBy(resourceOf(t, serviceOf("", nil), cluster, controller, "default").
			Delete(ctx, "kubernetes", metav1.DeleteOptions{DryRun: dry}), controllerPolicy)
	})
	for _, each := range []attempt{
		{"a Service", controller, team, serviceOf("web", nil), annotate, all},
		{"a Service that becomes its own", controller, team, serviceOf("web", nil), adopt, all},
		{"a derived Service that it adopts", controller, team, serviceOf("derived-web", nil), adopt, by(controllerPolicy, "create", "delete")},
		{"a derived Service that it leaves to others", controller, team, serviceOf("derived-web", nil), annotate, all},
		{"a slice", controller, team, sliceOf("web", map[string]string{export.LabelKubernetesService: "web"}), annotate, all},
		{"its own Service", controller, team, serviceOf("web", ours), annotate, nil},
		{"its own slice", controller, team, sliceOf("web", ours), annotate, nil},
		{"a hand-made slice", controller, team, sliceOf("hand-made", map[string]string{export.LabelService: "web"}), annotate, all},
		{"its own Service in a denied namespace", controller, denied, serviceOf("web", ours), annotate, by(controllerPolicy, "create", "update")},
		{"its own slice in a denied namespace", controller, denied, sliceOf("web", ours), annotate, by(controllerPolicy, "create", "update")},
	} {
		each.try(t, cluster)
	}
}

// TestExportsOfDeniedNamespaces tries to export from denied namespaces as an administrator.
func TestExportsOfDeniedNamespaces(t *testing.T) {
	cluster := installed(t)
	team, denied := namespaceOf(t, cluster, "team-"), namespaceOf(t, cluster, "kube-test-")
	try := func(ctx context.Context, namespace, version string) error {
		object := objectOf("multicluster.x-k8s.io/"+version, "ServiceExport", "web", nil, "spec", map[string]any{})
		_, err := resourceOf(t, object, cluster, user{}, namespace).Create(ctx, object, metav1.CreateOptions{DryRun: dry})
		return err
	}
	eventually(t, "the policy works", func(ctx context.Context) error {
		return deniedBy(try(ctx, "kube-system", "v1beta1"), exportsPolicy)
	})
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		for _, namespace := range []string{"kube-system", "kube-public", denied} {
			if err := deniedBy(try(t.Context(), namespace, version), exportsPolicy); err != nil {
				t.Errorf("export %s from %s: %v", version, namespace, err)
			}
		}
		for _, namespace := range []string{team, "default"} {
			if err := try(t.Context(), namespace, version); err != nil {
				t.Errorf("export %s from %s: %v", version, namespace, err)
			}
		}
	}
}
