// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// service is YAML of a Service with endpoints at the addresses, without a
// selector, so that no pod is needed.
func service(name string, addresses ...string) string {
	return serviceOf("{ports: [{name: http, port: 80, targetPort: 8080}]}", name, addresses...)
}

func headless(name string, addresses ...string) string {
	return serviceOf("{clusterIP: None, ports: [{name: http, port: 80, targetPort: 8080}]}", name, addresses...)
}

func serviceOf(spec, name string, addresses ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: %[2]s
---
`, name, spec) + endpoints(name, addresses...)
}

// endpoints is YAML of the EndpointSlice of a service.
func endpoints(name string, addresses ...string) string {
	var list []string
	for _, address := range addresses {
		list = append(list, fmt.Sprintf("{addresses: [%q], conditions: {ready: true, serving: true, terminating: false}}", address))
	}
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s-manual
  labels: {kubernetes.io/service-name: %[1]s}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [%[2]s]
---
`, name, strings.Join(list, ", "))
}

func serviceExport(name string) string {
	return fmt.Sprintf(`
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: %s}
---
`, name)
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (c *cluster) serviceImport(ctx context.Context, key types.NamespacedName) (*v1beta1.ServiceImport, error) {
	return c.mcs.MulticlusterV1beta1().ServiceImports(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

func (c *cluster) serviceExport(ctx context.Context, key types.NamespacedName) (*v1beta1.ServiceExport, error) {
	return c.mcs.MulticlusterV1beta1().ServiceExports(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// slicesOf returns the slices of a service that the controller wrote, sorted by
// name.
func (c *cluster) slicesOf(ctx context.Context, key types.NamespacedName) ([]discoveryv1.EndpointSlice, error) {
	list, err := c.DiscoveryV1().EndpointSlices(key.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: export.LabelService + "=" + key.Name + "," + export.LabelSliceManagedBy + "=" + export.Manager,
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// imported is how an import looks in one cluster, in one comparable text: its
// type, the clusters it came from, whether it is ready, and the usable
// addresses of each cluster.
func (c *cluster) imported(ctx context.Context, key types.NamespacedName) (string, error) {
	serviceImport, err := c.serviceImport(ctx, key)
	if apierrors.IsNotFound(err) {
		list, err := c.slicesOf(ctx, key)
		if err != nil {
			return "", err
		}
		if len(list) > 0 {
			return fmt.Sprintf("none, but %d slices", len(list)), nil
		}
		_, err = c.CoreV1().Services(key.Namespace).Get(ctx, export.DerivedServiceName(key), metav1.GetOptions{})
		if err == nil {
			return "none, but a derived Service", nil
		}
		return "none", nil
	}
	if err != nil {
		return "", err
	}
	var clusters []string
	for _, each := range serviceImport.Status.Clusters {
		clusters = append(clusters, each.Cluster)
	}
	ready := "without condition"
	if condition := meta.FindStatusCondition(serviceImport.Status.Conditions, "Ready"); condition != nil {
		ready = condition.Reason
	}
	list, err := c.slicesOf(ctx, key)
	if err != nil {
		return "", err
	}
	var addresses []string
	for _, slice := range list {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				addresses = append(addresses, slice.Labels[export.LabelSourceCluster]+"/"+endpoint.Addresses[0])
			}
		}
	}
	slices.Sort(addresses)
	return fmt.Sprintf("%s of %s %s [%s]", serviceImport.Spec.Type, strings.Join(clusters, ","), ready, strings.Join(addresses, " ")), nil
}

// expect waits until the import looks as wanted in all the clusters.
func expect(t testing.TB, key types.NamespacedName, want string, clusters ...*cluster) {
	t.Helper()
	for _, c := range clusters {
		eventually(t, "import "+key.String()+" in "+c.Name(), func(ctx context.Context) error {
			got, err := c.imported(ctx, key)
			if err == nil && got != want {
				err = fmt.Errorf("got  %s\nwant %s", got, want)
			}
			return err
		})
	}
}

// expectConditions waits until the conditions of the ServiceExport are as
// wanted, each as Type=Reason.
func expectConditions(t testing.TB, c *cluster, key types.NamespacedName, want string) {
	t.Helper()
	eventually(t, "conditions of ServiceExport "+key.String()+" in "+c.Name(), func(ctx context.Context) error {
		serviceExport, err := c.serviceExport(ctx, key)
		if err != nil {
			return err
		}
		var conditions []string
		for _, condition := range serviceExport.Status.Conditions {
			if condition.ObservedGeneration != serviceExport.Generation {
				return fmt.Errorf("condition %s is of generation %d, not %d", condition.Type, condition.ObservedGeneration, serviceExport.Generation)
			}
			conditions = append(conditions, condition.Type+"="+condition.Reason)
		}
		slices.Sort(conditions)
		if got := strings.Join(conditions, " "); got != want {
			return fmt.Errorf("got  %s\nwant %s", got, want)
		}
		return nil
	})
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) unexport(t testing.TB, key types.NamespacedName) {
	t.Helper()
	must(t, c.mcs.MulticlusterV1beta1().ServiceExports(key.Namespace).Delete(t.Context(), key.Name, metav1.DeleteOptions{}))
}
