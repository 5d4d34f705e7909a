// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// theirs is a Service with an IP, and the import that has the IP, as another
// implementation of the API writes them.
func (c *cluster) theirs(t *testing.T, key types.NamespacedName, derived string, annotations map[string]string) *corev1.Service {
	t.Helper()
	made, err := c.CoreV1().Services(key.Namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: derived, Labels: map[string]string{"service.cilium.io/global": "true"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(t, err)
	c.create(t, key.Namespace, fmt.Sprintf(`
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: %s}
spec: {type: ClusterSetIP, ips: [%q], ports: [{port: 80, protocol: TCP}]}
`, key.Name, made.Spec.ClusterIP))
	c.annotate(t, key, annotations)
	return made
}

// annotate adds annotations to an import.
func (c *cluster) annotate(t *testing.T, key types.NamespacedName, annotations map[string]string) {
	t.Helper()
	for name, value := range annotations {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, name, value)
		_, err := c.mcs.MulticlusterV1beta1().ServiceImports(key.Namespace).Patch(t.Context(), key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(t, err)
	}
}

var adopt = map[string]string{export.AnnotationAdopt: "true"}

// leavesAlone waits until the controller tells of an import that is another's,
// and checks that this is all it did.
func (c *cluster) leavesAlone(t *testing.T, imported *v1beta1.ServiceImport) {
	t.Helper()
	eventually(t, "event", c.event(imported, apply.EventForeignObject))
	untouched, err := c.serviceImport(t.Context(), key(imported.Namespace, imported.Name))
	must(t, err)
	if untouched.ResourceVersion != imported.ResourceVersion {
		t.Fatalf("the import was changed before anybody asked: %v", untouched)
	}
}

// waitsForIPs waits until an import was taken over, and the API server refused
// its IPs to the derived Service because another has them.
func (c *cluster) waitsForIPs(t *testing.T, key types.NamespacedName, ips []string) {
	t.Helper()
	eventually(t, "the refusal in the condition Ready", func(ctx context.Context) error {
		imported, err := c.serviceImport(ctx, key)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(imported.Status.Conditions, "Ready")
		if !slices.Equal(imported.Spec.IPs, ips) {
			t.Fatalf("the IPs are %v, want %v", imported.Spec.IPs, ips)
		}
		if !export.IsManaged(imported) || ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason == "Pending" {
			return fmt.Errorf("the import is %v", imported)
		}
		return nil
	})
}

// TestImportsOfOthersAreAdopted: an import of another implementation is left
// alone until a person says otherwise, and keeps its IP then.
func TestImportsOfOthersAreAdopted(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)

	t.Run("with the Service behind it", func(t *testing.T) {
		web := key(demo, "same-name")
		derived := export.DerivedServiceName(web)
		before := east.theirs(t, web, derived, map[string]string{export.AnnotationDerivedService: derived})
		imported, err := east.serviceImport(t.Context(), web)
		must(t, err)
		west.create(t, demo, service(web.Name, "10.65.0.10")+serviceExport(web.Name))
		east.leavesAlone(t, imported)

		east.annotate(t, web, adopt)
		expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
		east.hasIPs(t, web, before.Spec.ClusterIPs)
		after, err := east.CoreV1().Services(demo).Get(t.Context(), derived, metav1.GetOptions{})
		must(t, err)
		if after.UID != before.UID || !export.IsManaged(after) {
			t.Errorf("the Service was not adopted but made anew: %v", after.ObjectMeta)
		}
		quiet(t, east)
	})
	t.Run("from a Service of another name", func(t *testing.T) {
		web := key(demo, "other-name")
		before := east.theirs(t, web, "antrea-mc-other-name", nil)
		east.annotate(t, web, adopt)
		west.create(t, demo, service(web.Name, "10.65.0.11")+serviceExport(web.Name))
		east.waitsForIPs(t, web, before.Spec.ClusterIPs)
		if _, err := east.CoreV1().Services(demo).Get(t.Context(), before.Name, metav1.GetOptions{}); err != nil {
			t.Fatalf("the other's Service: %v", err)
		}
		must(t, east.CoreV1().Services(demo).Delete(t.Context(), before.Name, metav1.DeleteOptions{}))
		east.hasIPs(t, web, before.Spec.ClusterIPs)
		expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.11]", east)
		quiet(t, east)
	})
	t.Run("not without an export", func(t *testing.T) {
		web := key(demo, "no-export")
		east.theirs(t, web, "antrea-mc-no-export", adopt)
		imported, err := east.serviceImport(t.Context(), web)
		must(t, err)
		other := key(demo, "after")
		west.create(t, demo, service(other.Name, "10.65.0.12")+serviceExport(other.Name))
		expect(t, other, "ClusterSetIP of west Ready [west/10.65.0.12]", east)
		quiet(t, east)
		after, err := east.serviceImport(t.Context(), web)
		must(t, err)
		if after.ResourceVersion != imported.ResourceVersion {
			t.Error("an import with no export behind it was changed")
		}
	})
}
