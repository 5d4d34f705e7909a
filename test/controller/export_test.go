// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExportWithoutService(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")

	east.create(t, demo, serviceExport("web"))
	expectConditions(t, east, web, "Conflict=NoConflicts Ready=Failed Valid=NoService")
	expect(t, web, "none", east, west)

	east.create(t, demo, service("web", "10.64.0.10"))
	expectConditions(t, east, web, "Conflict=NoConflicts Ready=Ready Valid=Valid")
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10]", east, west)
	ips := east.ips(t, web)

	// The Service is replaced: the import stays with its IP.
	must(t, east.CoreV1().Services(demo).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	expectConditions(t, east, web, "Conflict=NoConflicts Ready=Failed Valid=NoService")
	east.create(t, demo, service("web", "10.64.0.11"))
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.11]", east, west)
	east.hasIPs(t, web, ips)

	// ExternalName is the export's own word that there is nothing.
	must(t, east.CoreV1().Services(demo).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	east.create(t, demo, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: ExternalName, externalName: example.com}
`)
	expectConditions(t, east, web, "Conflict=NoConflicts Ready=Failed Valid=InvalidServiceType")
	expect(t, web, "none", east, west)
}

func TestConflictIsToldInBothClusters(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	east.create(t, demo, service("web", "10.64.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10]", west)
	// creationTimestamps have whole seconds; equal ones would go by name, which
	// gives the same order here.
	west.create(t, demo, headless("web", "10.65.0.10")+serviceExport("web"))
	for _, c := range []*cluster{east, west} {
		eventually(t, "conflict in "+c.Name(), func(ctx context.Context) error {
			serviceExport, err := c.serviceExport(ctx, web)
			if err != nil {
				return err
			}
			condition := meta.FindStatusCondition(serviceExport.Status.Conditions, "Conflict")
			if condition == nil || condition.Status != metav1.ConditionTrue || condition.Reason != "TypeConflict" {
				return fmt.Errorf("got %v", condition)
			}
			return nil
		})
		serviceExport, err := c.serviceExport(t.Context(), web)
		must(t, err)
		eventually(t, "event", c.event(serviceExport, "TypeConflict"))
	}
	// The oldest goes: the other one decides.
	east.unexport(t, web)
	expect(t, web, "Headless of west Ready [west/10.65.0.10]", east, west)
	expectConditions(t, west, web, "Conflict=NoConflicts Ready=Ready Valid=Valid")
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	const want = "ClusterSetIP of west Ready [west/10.65.0.10]"
	expect(t, web, want, west)
	if got, err := east.imported(t.Context(), web); err != nil || got != "none" {
		t.Errorf("without the namespace: got %s %v", got, err)
	}

	east.createNamespace(t, demo)
	expect(t, web, want, east)

	must(t, east.CoreV1().Namespaces().Delete(t.Context(), demo, metav1.DeleteOptions{}))
	eventually(t, "namespace gone", func(ctx context.Context) error {
		_, err := east.CoreV1().Namespaces().Get(ctx, demo, metav1.GetOptions{})
		if err == nil {
			return errors.New("still there")
		}
		return nil
	})
	east.createNamespace(t, demo)
	expect(t, web, want, east)

	// The exporting namespace goes: so does the export.
	must(t, west.CoreV1().Namespaces().Delete(t.Context(), demo, metav1.DeleteOptions{}))
	expect(t, web, "none", east)
}

func TestDeniedNamespaces(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	east.options.DeniedNamespaces = []string{"test-*"}
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	east.create(t, demo, service("web", "10.64.0.10")+serviceExport("web"))
	expectConditions(t, east, web, "Conflict=NoConflicts Ready=Failed Valid=NamespaceDenied")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", west)
	expect(t, web, "none", east)
}

func TestRefusedDerivedService(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	quota, err := east.CoreV1().ResourceQuotas(demo).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	must(t, err)
	// No controller here counts what is used.
	quota.Status = corev1.ResourceQuotaStatus{
		Hard: quota.Spec.Hard,
		Used: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("0")},
	}
	_, err = east.CoreV1().ResourceQuotas(demo).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{})
	must(t, err)
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Forbidden [west/10.65.0.10]", east)
	serviceImport, err := east.serviceImport(t.Context(), web)
	must(t, err)
	eventually(t, "event", east.event(serviceImport, "Forbidden"))
	must(t, east.CoreV1().ResourceQuotas(demo).Delete(t.Context(), quota.Name, metav1.DeleteOptions{}))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
}
