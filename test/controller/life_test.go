// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestLifeOfAService(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")

	east.create(t, demo, service("web", "10.64.0.10", "10.64.0.11")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10 east/10.64.0.11]", east, west)
	expectConditions(t, east, web, "Conflict=NoConflicts Ready=Ready Valid=Valid")
	for _, c := range []*cluster{east, west} {
		serviceImport, err := c.serviceImport(t.Context(), web)
		must(t, err)
		derived, err := c.CoreV1().Services(demo).Get(t.Context(), export.DerivedServiceName(web), metav1.GetOptions{})
		must(t, err)
		if !slices.Equal(serviceImport.Spec.IPs, derived.Spec.ClusterIPs) || len(serviceImport.Spec.IPs) == 0 {
			t.Errorf("%s: the import has IPs %v, the derived Service %v", c.Name(), serviceImport.Spec.IPs, derived.Spec.ClusterIPs)
		}
		if got := serviceImport.Annotations[export.AnnotationDerivedService]; got != derived.Name {
			t.Errorf("%s: the import names the derived Service %q, want %q", c.Name(), got, derived.Name)
		}
	}

	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.10 east/10.64.0.11 west/10.65.0.10]", east, west)
	expectConditions(t, west, web, "Conflict=NoConflicts Ready=Ready Valid=Valid")

	east.create(t, demo, endpoints("web", "10.64.0.12"))
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.12 west/10.65.0.10]", east, west)

	east.create(t, demo, endpoints("web"))
	expect(t, web, "ClusterSetIP of east,west Ready [west/10.65.0.10]", east, west)

	east.unexport(t, web)
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east, west)
	west.unexport(t, web)
	expect(t, web, "none", east, west)
}

func TestHeadlessService(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	db := key(demo, "db")

	west.create(t, demo, headless("db", "10.65.0.20")+serviceExport("db"))
	expect(t, db, "Headless of west Ready [west/10.65.0.20]", east, west)
	eventually(t, "slices kept from kube-proxy", func(ctx context.Context) error {
		list, err := east.slicesOf(ctx, db)
		if err != nil {
			return err
		}
		for _, slice := range list {
			if _, ok := slice.Labels[export.LabelHeadless]; !ok || slice.Labels[export.LabelKubernetesService] != "" {
				return fmt.Errorf("slice %s has labels %v", slice.Name, slice.Labels)
			}
		}
		return nil
	})
}

func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	east.start(t)
	west.start(t)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	for _, c := range []*cluster{east, west} {
		c.create(t, demo, service("web", map[string]string{"east": "10.64.0.10", "west": "10.65.0.10"}[c.Name()])+serviceExport("web"))
		expect(t, web, fmt.Sprintf("ClusterSetIP of %[1]s Ready [%[1]s/%[2]s]", c.Name(), map[string]string{"east": "10.64.0.10", "west": "10.65.0.10"}[c.Name()]), c)
	}

	east.join(t, west)
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.10 west/10.65.0.10]", east)
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", west)

	east.leave(t, west)
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10]", east)
}

// TestDualStack exports a Service of two families from a cluster that has both
// to one that has IPv4 alone.
func TestDualStack(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, serviceOf("{ipFamilyPolicy: RequireDualStack, ports: [{name: http, port: 80}]}", "web", "10.65.0.10")+
		strings.NewReplacer("web-manual", "web-manual-6", "IPv4", "IPv6").Replace(endpoints("web", "fd00::10"))+
		serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10 west/fd00::10]", west)
	if ips := west.ips(t, web); len(ips) != 2 {
		t.Errorf("west: got IPs %v, want one of each family", ips)
	}
	west.hasIPs(t, web, west.ips(t, web))
	if ips := east.ips(t, web); len(ips) != 1 {
		t.Errorf("east: got IPs %v, want one", ips)
	}
	serviceImport, err := east.serviceImport(t.Context(), web)
	must(t, err)
	if !slices.Equal(serviceImport.Spec.IPFamilies, []corev1.IPFamily{corev1.IPv4Protocol}) {
		t.Errorf("east: got families %v", serviceImport.Spec.IPFamilies)
	}

	// The derived Service follows the Service to one family.
	west.create(t, demo, serviceOf("{ipFamilyPolicy: SingleStack, ports: [{name: http, port: 80}]}", "web", "10.65.0.10"))
	eventually(t, "one family", func(ctx context.Context) error {
		serviceImport, err := west.serviceImport(ctx, web)
		if err == nil && len(serviceImport.Spec.IPs) != 1 {
			err = fmt.Errorf("IPs %v", serviceImport.Spec.IPs)
		}
		return err
	})
	west.hasIPs(t, web, west.ips(t, web))
}

// TestChangeOfType turns a service headless and back.
func TestChangeOfType(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east, west)
	replace := func(text string) {
		must(t, west.CoreV1().Services(demo).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		west.create(t, demo, text)
	}
	replace(headless("web", "10.65.0.10"))
	expect(t, web, "Headless of west Ready [west/10.65.0.10]", east, west)
	for _, c := range []*cluster{east, west} {
		eventually(t, "nothing left of the other type in "+c.Name(), func(ctx context.Context) error {
			serviceImport, err := c.serviceImport(ctx, web)
			if err != nil {
				return err
			}
			if len(serviceImport.Spec.IPs) > 0 || serviceImport.Annotations[export.AnnotationDerivedService] != "" {
				return fmt.Errorf("the import has IPs %v and annotations %v", serviceImport.Spec.IPs, serviceImport.Annotations)
			}
			_, err = c.CoreV1().Services(demo).Get(ctx, export.DerivedServiceName(web), metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err == nil:
				return errors.New("the derived Service is there")
			}
			return err
		})
	}
	replace(service("web", "10.65.0.10"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east, west)
	for _, c := range []*cluster{east, west} {
		c.hasIPs(t, web, c.ips(t, web))
	}
}

// TestChangeOfTypeLosesNoAnswer: the service of west is exported throughout, so
// that there is no moment at which the import is answered with nothing.
func TestChangeOfTypeLosesNoAnswer(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	joined(t, east, west)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	east.create(t, demo, headless("web", "10.64.0.10")+serviceExport("web"))
	expect(t, web, "Headless of east Ready [east/10.64.0.10]", west)
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "Headless of east,west Ready [east/10.64.0.10 west/10.65.0.10]", east, west)
	watches := map[*cluster]watch.Interface{}
	for _, c := range []*cluster{east, west} {
		serviceImport, err := c.serviceImport(t.Context(), web)
		must(t, err)
		watches[c], err = c.mcs.MulticlusterV1beta1().ServiceImports(demo).Watch(t.Context(), metav1.ListOptions{ResourceVersion: serviceImport.ResourceVersion})
		must(t, err)
		defer watches[c].Stop()
	}
	east.unexport(t, web)
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east, west)
	for c, watched := range watches {
		for ready := false; !ready; {
			event := <-watched.ResultChan()
			serviceImport, ok := event.Object.(*v1beta1.ServiceImport)
			if !ok || event.Type != watch.Modified {
				t.Fatalf("%s: the import is %s: %v", c.Name(), event.Type, event.Object)
			}
			if serviceImport.Spec.Type == v1beta1.ClusterSetIP && len(serviceImport.Spec.IPs) == 0 {
				t.Errorf("%s: the import has type ClusterSetIP and no IP", c.Name())
			}
			ready = serviceImport.Spec.Type == v1beta1.ClusterSetIP && len(serviceImport.Spec.IPs) > 0
		}
	}
}
