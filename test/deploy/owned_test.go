// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

const controllerPolicy = "clusterset-controller"

var (
	servicesOf = corev1.SchemeGroupVersion.WithResource("services")
	slicesOf   = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	dry        = []string{metav1.DryRunAll}
)

// An owned is an object that the policies are about.
type owned struct {
	schema.GroupVersionResource
	*unstructured.Unstructured
}

func serviceOf(t *testing.T, name string, labels map[string]string) owned {
	return ownedOf(t, servicesOf, &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
}

func sliceOf(t *testing.T, name string, labels map[string]string) owned {
	return ownedOf(t, slicesOf, &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: labels},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	})
}

func ownedOf(t *testing.T, resource schema.GroupVersionResource, object any) owned {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	must(t, err)
	return owned{resource, &unstructured.Unstructured{Object: content}}
}

// writes creates the object, tries each operation by a dry run, and deletes the object.
func (o owned) writes(
	t *testing.T, cluster *controlplane.Cluster, who user, namespace string, change func(*unstructured.Unstructured),
) map[string]error {
	t.Helper()
	all := cluster.Dynamic().Resource(o.GroupVersionResource).Namespace(namespace)
	existing, err := all.Create(t.Context(), o.DeepCopy(), metav1.CreateOptions{})
	must(t, err)
	client := as(t, cluster, who).Resource(o.GroupVersionResource).Namespace(namespace)
	results := map[string]error{}
	created := o.DeepCopy()
	created.SetName(o.GetName() + "-2")
	_, results["create"] = client.Create(t.Context(), created, metav1.CreateOptions{DryRun: dry})
	change(existing)
	_, results["update"] = client.Update(t.Context(), existing, metav1.UpdateOptions{DryRun: dry})
	results["delete"] = client.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{DryRun: dry})
	must(t, all.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}))
	return results
}

func annotate(object *unstructured.Unstructured) { object.SetAnnotations(map[string]string{"a": "b"}) }

// TestWhoWritesObjectsOfTheController tries to redirect an imported name, and to publish without a ServiceExport, as
// everybody who might.
func TestWhoWritesObjectsOfTheController(t *testing.T) {
	cluster := installed(t)
	team := namespaceOf(t, cluster, "team-")
	owner := user{name: "owner-of-" + team}
	grant(t, cluster, team, "cluster-admin", owner)
	collector, namespaces := account("kube-system", "generic-garbage-collector"),
		account("kube-system", "namespace-controller")
	controller := account(system, "clusterset-controller")
	service := serviceOf(t, "derived", map[string]string{export.LabelManagedBy: export.Manager})
	slice := sliceOf(t, "copy", map[string]string{export.LabelSliceManagedBy: export.Manager})
	published := sliceOf(t, "published",
		map[string]string{export.LabelService: "web", export.LabelSourceCluster: "east"})
	handMade := sliceOf(t, "hand-made", map[string]string{export.LabelService: "web"})
	other := serviceOf(t, "web", map[string]string{export.LabelManagedBy: "Helm"})
	unlabel := func(object *unstructured.Unstructured) { object.SetLabels(nil) }
	denied := map[string]string{"create": importsPolicy, "update": importsPolicy, "delete": importsPolicy}
	eventually(t, "the policy works", func(ctx context.Context) error {
		_, err := as(t, cluster, owner).Resource(servicesOf).Namespace(team).Create(ctx, service.DeepCopy(),
			metav1.CreateOptions{DryRun: dry})
		return deniedBy(err, importsPolicy)
	})
	for _, test := range []struct {
		what   string
		who    user
		object owned
		change func(*unstructured.Unstructured)
		// denied maps operations to the policy that denies them, empty for RBAC. The others are allowed.
		denied map[string]string
	}{
		{"a derived Service", owner, service, annotate, denied},
		{"the label of a derived Service", owner, service, unlabel, denied},
		{"a copy", owner, slice, annotate, denied},
		{"a published slice", owner, published, annotate, denied},
		{"a hand-made slice", owner, handMade, annotate, nil},
		{"a Service", owner, other, annotate, nil},
		{"a derived Service", controller, service, annotate, nil},
		{"a copy", controller, slice, annotate, nil},
		{"a derived Service", collector, service, annotate, map[string]string{"create": ""}},
		{"a copy", collector, slice, annotate, map[string]string{"create": ""}},
		{"a derived Service", namespaces, service, annotate, map[string]string{"create": "", "update": ""}},
		{"a copy", namespaces, slice, annotate, map[string]string{"create": "", "update": ""}},
	} {
		for operation, err := range test.object.writes(t, cluster, test.who, team, test.change) {
			policy, want := test.denied[operation]
			if want {
				err = deniedBy(err, policy)
			}
			if err != nil {
				t.Errorf("%s: %s of %s: %v", test.who.name, operation, test.what, err)
			}
		}
	}
}

// TestTheControllerIsConfined tries as the controller what RBAC cannot refuse to it.
func TestTheControllerIsConfined(t *testing.T) {
	cluster := installed(t)
	team, denied := namespaceOf(t, cluster, "team-"), namespaceOf(t, cluster, "kube-test-")
	controller := account(system, "clusterset-controller")
	ours := map[string]string{export.LabelManagedBy: export.Manager, export.LabelSliceManagedBy: export.Manager}
	all := map[string]string{"create": controllerPolicy, "update": controllerPolicy, "delete": controllerPolicy}
	eventually(t, "the policy works", func(ctx context.Context) error {
		return deniedBy(as(t, cluster, controller).Resource(servicesOf).Namespace("default").
			Delete(ctx, "kubernetes", metav1.DeleteOptions{DryRun: dry}), controllerPolicy)
	})
	for _, test := range []struct {
		what, namespace string
		object          owned
		change          func(*unstructured.Unstructured)
		denied          map[string]string
	}{
		{"a Service", team, serviceOf(t, "web", nil), annotate, all},
		{"a Service that becomes its own", team, serviceOf(t, "web", nil), func(object *unstructured.Unstructured) {
			object.SetLabels(ours)
		}, all},
		{"a derived Service that it adopts", team, serviceOf(t, "derived-web", nil), func(object *unstructured.Unstructured) {
			object.SetLabels(ours)
		}, map[string]string{"create": controllerPolicy, "delete": controllerPolicy}},
		{"a derived Service that it leaves to others", team, serviceOf(t, "derived-web", nil), annotate, all},
		{"a slice", team, sliceOf(t, "web", map[string]string{export.LabelKubernetesService: "web"}), annotate, all},
		{"its own Service", team, serviceOf(t, "web", ours), annotate, nil},
		{"its own slice", team, sliceOf(t, "web", ours), annotate, nil},
		{"a hand-made slice", team, sliceOf(t, "hand-made", map[string]string{export.LabelService: "web"}), annotate, all},
		{
			"its own Service in a denied namespace", denied, serviceOf(t, "web", ours), annotate,
			map[string]string{"create": controllerPolicy, "update": controllerPolicy},
		},
		{
			"its own slice in a denied namespace", denied, sliceOf(t, "web", ours), annotate,
			map[string]string{"create": controllerPolicy, "update": controllerPolicy},
		},
	} {
		for operation, err := range test.object.writes(t, cluster, controller, test.namespace, test.change) {
			policy, want := test.denied[operation]
			if want {
				err = deniedBy(err, policy)
			}
			if err != nil {
				t.Errorf("%s of %s: %v", operation, test.what, err)
			}
		}
	}
}
