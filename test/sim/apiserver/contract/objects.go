// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// objects are operations on single objects of built-in resources.
var objects = []Operation{
	{"create and get", func(ctx context.Context, c *Client) (string, error) {
		created, err := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		got, err := c.CoreV1().ConfigMaps(c.Namespace).Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return words(created.UID != "", created.ResourceVersion != "", got.ResourceVersion == created.ResourceVersion,
			!got.CreationTimestamp.IsZero()), nil
	}, "true true true true"},
	{"create what exists", func(ctx context.Context, c *Client) (string, error) {
		_, err1 := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		_, err2 := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		return results(err1, err2), nil
	}, "ok, AlreadyExists 409"},
	{"create in a namespace that does not exist", func(ctx context.Context, c *Client) (string, error) {
		_, err := c.CoreV1().ConfigMaps("nowhere").Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		return result(err), nil
	}, "NotFound 404"},
	{"get what does not exist", func(ctx context.Context, c *Client) (string, error) {
		_, err := c.CoreV1().ConfigMaps(c.Namespace).Get(ctx, "none", metav1.GetOptions{})
		return result(err), nil
	}, "NotFound 404"},
	{"generated names differ", func(ctx context.Context, c *Client) (string, error) {
		named := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "some-"}}
		one, err1 := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, named, metav1.CreateOptions{})
		two, err2 := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, named, metav1.CreateOptions{})
		return words(results(err1, err2), strings.HasPrefix(one.Name, "some-"), one.Name != two.Name), nil
	}, "ok, ok true true"},
	{"a dry run creates nothing", func(ctx context.Context, c *Client) (string, error) {
		_, err1 := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, configMap("one", "red"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		_, err2 := c.CoreV1().ConfigMaps(c.Namespace).Get(ctx, "one", metav1.GetOptions{})
		return results(err1, err2), nil
	}, "ok, NotFound 404"},
	{"names and labels are validated", func(ctx context.Context, c *Client) (string, error) {
		_, err1 := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, configMap("Upper", "red"), metav1.CreateOptions{})
		_, err2 := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, configMap("one", "no value"), metav1.CreateOptions{})
		_, err3 := c.CoreV1().Services(c.Namespace).Create(ctx, service("with.dot"), metav1.CreateOptions{})
		return results(err1, err2, err3), nil
	}, "Invalid 422, Invalid 422, Invalid 422"},
	{"an update of an older version conflicts", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		old, err := client.Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		changed := old.DeepCopy()
		changed.Labels["color"] = "blue"
		changed, err1 := client.Update(ctx, changed, metav1.UpdateOptions{})
		_, err2 := client.Update(ctx, old, metav1.UpdateOptions{})
		return words(results(err1, err2), changed.UID == old.UID, changed.ResourceVersion != old.ResourceVersion), nil
	}, "ok, Conflict 409 true true"},
	{"an update of another object of that name conflicts", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		created, err := client.Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		created.UID = "another"
		_, err = client.Update(ctx, created, metav1.UpdateOptions{})
		return result(err), nil
	}, "Conflict 409"},
	{"an update that changes nothing makes no version", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		created, err := client.Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		updated, err := client.Update(ctx, created, metav1.UpdateOptions{})
		if err != nil {
			return "", err
		}
		return words(updated.ResourceVersion == created.ResourceVersion), nil
	}, "true"},
	{"a Lease is updated with its version", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoordinationV1().Leases(c.Namespace)
		lease, err := client.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
			metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		holder := "me"
		lease.Spec.HolderIdentity = &holder
		_, err1 := client.Update(ctx, lease, metav1.UpdateOptions{})
		_, err2 := client.Update(ctx, lease, metav1.UpdateOptions{})
		return results(err1, err2), nil
	}, "ok, Conflict 409"},
	{"a merge patch", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		if _, err := client.Create(ctx, configMap("one", "red"), metav1.CreateOptions{}); err != nil {
			return "", err
		}
		patched, err := client.Patch(ctx, "one", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"color":null,"size":"big"}}}`), metav1.PatchOptions{})
		return words(result(err), patched.Labels), nil
	}, "ok map[size:big]"},
	{"a Service gets its cluster IP and keeps it", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().Services(c.Namespace)
		created, err := client.Create(ctx, service("one"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		ip := created.Spec.ClusterIP
		without := created.DeepCopy()
		without.Spec.ClusterIP, without.Spec.ClusterIPs = "", nil
		kept, err1 := client.Update(ctx, without, metav1.UpdateOptions{})
		other := created.DeepCopy()
		other.Spec.ClusterIP, other.Spec.ClusterIPs = "10.96.200.200", []string{"10.96.200.200"}
		_, err2 := client.Update(ctx, other, metav1.UpdateOptions{})
		taken := service("two")
		taken.Spec.ClusterIP = ip
		_, err3 := client.Create(ctx, taken, metav1.CreateOptions{})
		return words(ip != "", created.Spec.ClusterIPs[0] == ip, kept.Spec.ClusterIP == ip,
			results(err1, err2, err3)), nil
	}, "true true true ok, Invalid 422, Invalid 422"},
	{"a Service has defaults", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().Services(c.Namespace)
		created, err := client.Create(ctx, service("one"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		headless := service("two")
		headless.Spec.ClusterIP = corev1.ClusterIPNone
		headless, err = client.Create(ctx, headless, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		s := created.Spec
		return words(s.Type, s.SessionAffinity, s.IPFamilies, *s.IPFamilyPolicy, *s.InternalTrafficPolicy,
			s.Ports[0].Protocol, s.Ports[0].TargetPort.IntVal, headless.Spec.ClusterIPs), nil
	}, "ClusterIP None [IPv4] SingleStack Cluster TCP 80 [None]"},
	{"the families of headless Services", func(ctx context.Context, c *Client) (string, error) {
		var texts []string
		for _, selector := range []map[string]string{{"app": "one"}, nil} {
			headless := service(fmt.Sprintf("s-%d", len(selector)))
			headless.Spec.ClusterIP, headless.Spec.Selector = corev1.ClusterIPNone, selector
			created, err := c.CoreV1().Services(c.Namespace).Create(ctx, headless, metav1.CreateOptions{})
			if err != nil {
				return "", err
			}
			texts = append(texts, words(created.Spec.IPFamilies, *created.Spec.IPFamilyPolicy))
		}
		dual, policy := service("dual"), corev1.IPFamilyPolicyRequireDualStack
		dual.Spec.IPFamilyPolicy = &policy
		_, err := c.CoreV1().Services(c.Namespace).Create(ctx, dual, metav1.CreateOptions{})
		return strings.Join(append(texts, result(err)), ", "), nil
	}, "[IPv4] SingleStack, [IPv4 IPv6] RequireDualStack, Invalid 422"},
	{"the ports of a Service are validated", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().Services(c.Namespace)
		none, twice, unnamed := service("one"), service("one"), service("one")
		none.Spec.Ports = nil
		twice.Spec.Ports = append(twice.Spec.Ports, corev1.ServicePort{Name: "http", Port: 81})
		unnamed.Spec.Ports = append(unnamed.Spec.Ports, corev1.ServicePort{Port: 81})
		_, err1 := client.Create(ctx, none, metav1.CreateOptions{})
		_, err2 := client.Create(ctx, twice, metav1.CreateOptions{})
		_, err3 := client.Create(ctx, unnamed, metav1.CreateOptions{})
		return results(err1, err2, err3), nil
	}, "Invalid 422, Invalid 422, Invalid 422"},
	{"the generation of an EndpointSlice", func(ctx context.Context, c *Client) (string, error) {
		client := c.DiscoveryV1().EndpointSlices(c.Namespace)
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "one"}, AddressType: discoveryv1.AddressTypeIPv4,
		}
		first, err := client.Create(ctx, slice, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		changed := first.DeepCopy()
		changed.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.64.0.1"}}}
		second, err := client.Update(ctx, changed, metav1.UpdateOptions{})
		if err != nil {
			return "", err
		}
		other := second.DeepCopy()
		other.AddressType = discoveryv1.AddressTypeIPv6
		_, err = client.Update(ctx, other, metav1.UpdateOptions{})
		return words(first.Generation, second.Generation, result(err)), nil
	}, "1 2 Invalid 422"},
}

// custom are operations on custom resources.
var custom = []Operation{
	{"status and spec are written apart", func(ctx context.Context, c *Client) (string, error) {
		client := c.Dynamic.Resource(exports).Namespace(c.Namespace)
		begin := export("one")
		condition := []any{
			map[string]any{
				"type": "Valid", "status": "True", "reason": "Valid", "message": "",
				"lastTransitionTime": "2026-01-01T00:00:00Z",
			},
		}
		if err := unstructured.SetNestedSlice(begin.Object, condition, "status", "conditions"); err != nil {
			return "", err
		}
		created, err := client.Create(ctx, begin, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		_, atCreate, _ := unstructured.NestedSlice(created.Object, "status", "conditions")
		both := created.DeepCopy()
		if err := unstructured.SetNestedSlice(both.Object, condition, "status", "conditions"); err != nil {
			return "", err
		}
		if err := unstructured.SetNestedStringMap(both.Object, map[string]string{"a": "b"}, "spec",
			"exportedLabels"); err != nil {
			return "", err
		}
		byStatus, err := client.UpdateStatus(ctx, both, metav1.UpdateOptions{})
		if err != nil {
			return "", err
		}
		_, specByStatus, _ := unstructured.NestedStringMap(byStatus.Object, "spec", "exportedLabels")
		_, statusByStatus, _ := unstructured.NestedSlice(byStatus.Object, "status", "conditions")
		both.SetResourceVersion(byStatus.GetResourceVersion())
		unstructured.RemoveNestedField(both.Object, "status")
		byObject, err := client.Update(ctx, both, metav1.UpdateOptions{})
		if err != nil {
			return "", err
		}
		_, statusByObject, _ := unstructured.NestedSlice(byObject.Object, "status", "conditions")
		return words(atCreate, specByStatus, statusByStatus, statusByObject, created.GetGeneration(),
			byStatus.GetGeneration(), byObject.GetGeneration()), nil
	}, "false false true true 1 1 2"},
	{"labels make no generation", func(ctx context.Context, c *Client) (string, error) {
		client := c.Dynamic.Resource(exports).Namespace(c.Namespace)
		created, err := client.Create(ctx, export("one"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		created.SetLabels(map[string]string{"a": "b"})
		updated, err := client.Update(ctx, created, metav1.UpdateOptions{})
		if err != nil {
			return "", err
		}
		return words(updated.GetGeneration()), nil
	}, "1"},
	{"an update needs a version", func(ctx context.Context, c *Client) (string, error) {
		client := c.Dynamic.Resource(exports).Namespace(c.Namespace)
		created, err := client.Create(ctx, export("one"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		created.SetResourceVersion("")
		_, err = client.Update(ctx, created, metav1.UpdateOptions{})
		return result(err), nil
	}, "Invalid 422"},
	{"unknown fields are pruned", func(ctx context.Context, c *Client) (string, error) {
		odd := export("one")
		odd.Object["unknown"] = "field"
		created, err := c.Dynamic.Resource(exports).Namespace(c.Namespace).Create(ctx, odd, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		_, kept := created.Object["unknown"]
		return words(kept), nil
	}, "false"},
	{"a version that is not served", func(ctx context.Context, c *Client) (string, error) {
		_, err := c.Dynamic.Resource(exports.GroupResource().WithVersion("v9")).Namespace(c.Namespace).List(ctx,
			metav1.ListOptions{})
		return result(err), nil
	}, "NotFound 404"},
	{"one object in both versions", func(ctx context.Context, c *Client) (string, error) {
		if _, err := c.Dynamic.Resource(exports).Namespace(c.Namespace).Create(ctx, export("one"),
			metav1.CreateOptions{}); err != nil {
			return "", err
		}
		older, err := c.Dynamic.Resource(exports.GroupResource().WithVersion("v1alpha1")).Namespace(c.Namespace).Get(
			ctx, "one", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return older.GetAPIVersion(), nil
	}, "multicluster.x-k8s.io/v1alpha1"},
}
