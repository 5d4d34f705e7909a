// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// ips returns the IPs of an import that has some.
func (c *cluster) ips(t testing.TB, key types.NamespacedName) []string {
	t.Helper()
	var ips []string
	eventually(t, "IPs of import "+key.String(), func(ctx context.Context) error {
		serviceImport, err := c.serviceImport(ctx, key)
		if err == nil && len(serviceImport.Spec.IPs) == 0 {
			err = errors.New("no IPs")
		}
		if err == nil {
			ips = serviceImport.Spec.IPs
		}
		return err
	})
	return ips
}

// hasIPs waits until import and derived Service both have exactly these IPs.
func (c *cluster) hasIPs(t testing.TB, key types.NamespacedName, want []string) {
	t.Helper()
	eventually(t, "IPs of import "+key.String(), func(ctx context.Context) error {
		serviceImport, err := c.serviceImport(ctx, key)
		if err != nil {
			return err
		}
		derived, err := c.CoreV1().Services(key.Namespace).Get(ctx, export.DerivedServiceName(key), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.Equal(serviceImport.Spec.IPs, want) || !slices.Equal(derived.Spec.ClusterIPs, want) {
			return fmt.Errorf("the import has %v, the derived Service %v, want %v", serviceImport.Spec.IPs, derived.Spec.ClusterIPs, want)
		}
		return nil
	})
}

func TestClusterSetIPSurvivesDeletionAndRestart(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	east.join(t, west)
	stop := east.start(t)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	const want = "ClusterSetIP of west Ready [west/10.65.0.10]"
	expect(t, web, want, east)
	ips := east.ips(t, web)

	services := east.CoreV1().Services(demo)
	must(t, services.Delete(t.Context(), export.DerivedServiceName(web), metav1.DeleteOptions{}))
	east.hasIPs(t, web, ips)

	// While the controller is away the Service goes and its IP is free.
	stop()
	must(t, services.Delete(t.Context(), export.DerivedServiceName(web), metav1.DeleteOptions{}))
	stop = east.start(t)
	east.hasIPs(t, web, ips)

	// Somebody else takes the IP meanwhile.
	stop()
	must(t, services.Delete(t.Context(), export.DerivedServiceName(web), metav1.DeleteOptions{}))
	thief, err := services.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "thief"},
		Spec:       corev1.ServiceSpec{ClusterIP: ips[0], Ports: []corev1.ServicePort{{Port: 1}}},
	}, metav1.CreateOptions{})
	must(t, err)
	east.start(t)
	expect(t, web, "ClusterSetIP of west Invalid [west/10.65.0.10]", east)
	must(t, services.Delete(t.Context(), thief.Name, metav1.DeleteOptions{}))
	east.hasIPs(t, web, ips)
	expect(t, web, want, east)
}

func TestForcedDeletionOfAnImport(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	const want = "ClusterSetIP of west Ready [west/10.65.0.10]"
	expect(t, web, want, east, west)
	imports := east.mcs.MulticlusterV1beta1().ServiceImports(demo)

	for _, options := range []metav1.DeleteOptions{
		{GracePeriodSeconds: ptr.To(int64(0))},
		{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)},
		{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)},
	} {
		before, err := imports.Get(t.Context(), "web", metav1.GetOptions{})
		must(t, err)
		must(t, imports.Delete(t.Context(), "web", options))
		eventually(t, "another import", func(ctx context.Context) error {
			after, err := imports.Get(ctx, "web", metav1.GetOptions{})
			if err == nil && after.UID == before.UID {
				err = errors.New("the import is still the old one")
			}
			return err
		})
		expect(t, web, want, east)
		// Everything belongs to the import that there is now.
		eventually(t, "owners", func(ctx context.Context) error {
			owner, err := imports.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			derived, err := east.CoreV1().Services(demo).Get(ctx, export.DerivedServiceName(web), metav1.GetOptions{})
			if err != nil {
				return err
			}
			list, err := east.slicesOf(ctx, web)
			if err != nil {
				return err
			}
			owned := []metav1.Object{derived}
			for i := range list {
				owned = append(owned, &list[i])
			}
			for _, object := range owned {
				if references := object.GetOwnerReferences(); len(references) != 1 || references[0].UID != owner.UID {
					return fmt.Errorf("%s is owned by %v, want %s", object.GetName(), references, owner.UID)
				}
			}
			return nil
		})
	}
}

// TestGarbageCollection removes an import while no controller runs: Kubernetes
// removes all that was made for it, and the controller brings it back.
func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	east.join(t, west)
	stop := east.start(t)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	stop()
	must(t, east.mcs.MulticlusterV1beta1().ServiceImports(demo).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	expect(t, web, "none", east)
	// The exporting cluster's slices belong to the export.
	must(t, west.mcs.MulticlusterV1beta1().ServiceImports(demo).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", west)
	east.start(t)
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
}

func TestForeignObjectsAreLeftAlone(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)

	t.Run("ServiceImport", func(t *testing.T) {
		web := key(demo, "foreign-import")
		east.create(t, demo, `
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: foreign-import}
spec: {type: ClusterSetIP, ips: [192.0.2.1], ports: [{port: 1}]}
`)
		before, err := east.serviceImport(t.Context(), web)
		must(t, err)
		west.create(t, demo, service(web.Name, "10.65.0.10")+serviceExport(web.Name))
		expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", west)
		eventually(t, "event", east.event(before, apply.EventForeignObject))
		// An export of this cluster is published all the same.
		east.create(t, demo, service(web.Name, "10.64.0.10")+serviceExport(web.Name))
		expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.10 west/10.65.0.10]", west)
		after, err := east.serviceImport(t.Context(), web)
		must(t, err)
		if after.ResourceVersion != before.ResourceVersion {
			t.Errorf("the foreign ServiceImport was changed: %v", after)
		}
		must(t, east.mcs.MulticlusterV1beta1().ServiceImports(demo).Delete(t.Context(), web.Name, metav1.DeleteOptions{}))
		expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.10 west/10.65.0.10]", east, west)
	})
	t.Run("Service", func(t *testing.T) {
		web := key(demo, "foreign-service")
		name := export.DerivedServiceName(web)
		foreign, err := east.CoreV1().Services(demo).Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
		}, metav1.CreateOptions{})
		must(t, err)
		west.create(t, demo, service(web.Name, "10.65.0.10")+serviceExport(web.Name))
		eventually(t, "event", east.event(foreign, apply.EventForeignObject))
		eventually(t, "import without IP", func(ctx context.Context) error {
			serviceImport, err := east.serviceImport(ctx, web)
			if err != nil {
				return err
			}
			if len(serviceImport.Spec.IPs) > 0 || meta.IsStatusConditionTrue(serviceImport.Status.Conditions, "Ready") {
				return fmt.Errorf("the import is %v", serviceImport)
			}
			return nil
		})
		after, err := east.CoreV1().Services(demo).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		if after.ResourceVersion != foreign.ResourceVersion {
			t.Errorf("the foreign Service was changed: %v", after)
		}
		must(t, east.CoreV1().Services(demo).Delete(t.Context(), name, metav1.DeleteOptions{}))
		expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	})
	t.Run("EndpointSlice", func(t *testing.T) {
		web := key(demo, "foreign-slice")
		west.create(t, demo, service(web.Name, "10.65.0.10")+serviceExport(web.Name))
		expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
		list, err := east.slicesOf(t.Context(), web)
		must(t, err)
		// It becomes somebody else's.
		foreign := list[0].DeepCopy()
		foreign.Labels[export.LabelSliceManagedBy] = "somebody-else"
		slices := east.DiscoveryV1().EndpointSlices(demo)
		foreign, err = slices.Update(t.Context(), foreign, metav1.UpdateOptions{})
		must(t, err)
		eventually(t, "event", east.event(foreign, apply.EventForeignObject))
		west.unexport(t, web)
		eventually(t, "un-export", func(ctx context.Context) error {
			_, err := east.serviceImport(ctx, web)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.New("the import is still there")
		})
		// Nothing of ours deletes it; it is Kubernetes that may, for its owner
		// is gone.
		if after, err := slices.Get(t.Context(), foreign.Name, metav1.GetOptions{}); err == nil && after.ResourceVersion != foreign.ResourceVersion {
			t.Errorf("the foreign EndpointSlice was changed: %v", after)
		}
	})
}
