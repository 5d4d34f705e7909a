// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// objects are operations on single objects of built-in resources.
var objects = []Operation{
	{"create and get", func(ctx context.Context, c *Client) string {
		_, err1 := c.Maps.Get(ctx, "one", metav1.GetOptions{})
		created := need(c.Maps.Create(ctx, configMap("one", "red"), metav1.CreateOptions{}))
		got := need(c.Maps.Get(ctx, "one", metav1.GetOptions{}))
		_, err2 := c.Maps.Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		_, err3 := c.CoreV1().ConfigMaps("nowhere").Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		return words(created.UID != "", created.ResourceVersion != "", got.ResourceVersion == created.ResourceVersion,
			!got.CreationTimestamp.IsZero(), results(err1, err2, err3))
	}, "true true true true NotFound 404, AlreadyExists 409, NotFound 404"},
	{"generated names differ", func(ctx context.Context, c *Client) string {
		named := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "some-"}}
		one, err1 := c.Maps.Create(ctx, named, metav1.CreateOptions{})
		two, err2 := c.Maps.Create(ctx, named, metav1.CreateOptions{})
		return words(results(err1, err2), strings.HasPrefix(one.Name, "some-"), one.Name != two.Name)
	}, "ok, ok true true"},
	{"a dry run creates nothing", func(ctx context.Context, c *Client) string {
		_, err1 := c.Maps.Create(ctx, configMap("one", "red"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		_, err2 := c.Maps.Get(ctx, "one", metav1.GetOptions{})
		return results(err1, err2)
	}, "ok, NotFound 404"},
	{"names and labels are validated", func(ctx context.Context, c *Client) string {
		_, err1 := c.Maps.Create(ctx, configMap("Upper", "red"), metav1.CreateOptions{})
		_, err2 := c.Maps.Create(ctx, configMap("one", "no value"), metav1.CreateOptions{})
		_, err3 := c.CoreV1().Services(c.Namespace).Create(ctx, service("with.dot"), metav1.CreateOptions{})
		return results(err1, err2, err3)
	}, "Invalid 422, Invalid 422, Invalid 422"},
	{"an update conflicts with an older version and another object, and makes a version if it changes something", func(ctx context.Context, c *Client) string {
		old := need(c.Maps.Create(ctx, configMap("one", "red"), metav1.CreateOptions{}))
		changed := old.DeepCopy()
		changed.Labels["color"] = "blue"
		changed, err1 := c.Maps.Update(ctx, changed, metav1.UpdateOptions{})
		_, err2 := c.Maps.Update(ctx, old, metav1.UpdateOptions{})
		same := need(c.Maps.Update(ctx, changed, metav1.UpdateOptions{}))
		another := changed.DeepCopy()
		another.UID = "another"
		_, err3 := c.Maps.Update(ctx, another, metav1.UpdateOptions{})
		return words(results(err1, err2, err3), changed.UID == old.UID, changed.ResourceVersion != old.ResourceVersion,
			changed.ResourceVersion == same.ResourceVersion)
	}, "ok, Conflict 409, Conflict 409 true true true"},
	{"a merge patch", func(ctx context.Context, c *Client) string {
		need(c.Maps.Create(ctx, configMap("one", "red"), metav1.CreateOptions{}))
		patched, err := c.Maps.Patch(ctx, "one", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"color":null,"size":"big"}}}`), metav1.PatchOptions{})
		return words(result(err), patched.Labels)
	}, "ok map[size:big]"},
	{"a server-side apply creates, updates, and removes what it applied before", func(ctx context.Context, c *Client) string {
		apply := func(labels map[string]string) error {
			_, err := c.Maps.Apply(ctx, applycorev1.ConfigMap("one", c.Namespace).WithLabels(labels),
				metav1.ApplyOptions{FieldManager: "test", Force: true})
			return err
		}
		err1 := apply(map[string]string{"color": "red", "shape": "round"})
		_, err2 := c.Maps.Patch(ctx, "one", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"color":"blue","size":"big"}}}`), metav1.PatchOptions{})
		err3 := apply(map[string]string{"color": "red"})
		before := need(c.Maps.Get(ctx, "one", metav1.GetOptions{}))
		err4 := apply(map[string]string{"color": "red"})
		after := need(c.Maps.Get(ctx, "one", metav1.GetOptions{}))
		return words(results(err1, err2, err3, err4), after.Labels, before.ResourceVersion == after.ResourceVersion)
	}, "ok, ok, ok, ok map[color:red size:big] true"},
	{"a Service gets its cluster IP and keeps it", func(ctx context.Context, c *Client) string {
		client := c.CoreV1().Services(c.Namespace)
		created := need(client.Create(ctx, service("one"), metav1.CreateOptions{}))
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
			results(err1, err2, err3))
	}, "true true true ok, Invalid 422, Invalid 422"},
	{"a Service has defaults", func(ctx context.Context, c *Client) string {
		client := c.CoreV1().Services(c.Namespace)
		created := need(client.Create(ctx, service("one"), metav1.CreateOptions{}))
		headless := service("two")
		headless.Spec.ClusterIP = corev1.ClusterIPNone
		headless = need(client.Create(ctx, headless, metav1.CreateOptions{}))
		s := created.Spec
		return words(s.Type, s.SessionAffinity, s.IPFamilies, *s.IPFamilyPolicy, *s.InternalTrafficPolicy,
			s.Ports[0].Protocol, s.Ports[0].TargetPort.IntVal, headless.Spec.ClusterIPs)
	}, "ClusterIP None [IPv4] SingleStack Cluster TCP 80 [None]"},
	{"the families of headless Services", func(ctx context.Context, c *Client) string {
		var texts []string
		for _, selector := range []map[string]string{{"app": "one"}, nil} {
			headless := service(fmt.Sprintf("s-%d", len(selector)))
			headless.Spec.ClusterIP, headless.Spec.Selector = corev1.ClusterIPNone, selector
			created := need(c.CoreV1().Services(c.Namespace).Create(ctx, headless, metav1.CreateOptions{}))
			texts = append(texts, words(created.Spec.IPFamilies, *created.Spec.IPFamilyPolicy))
		}
		dual, policy := service("dual"), corev1.IPFamilyPolicyRequireDualStack
		dual.Spec.IPFamilyPolicy = &policy
		_, err := c.CoreV1().Services(c.Namespace).Create(ctx, dual, metav1.CreateOptions{})
		return strings.Join(append(texts, result(err)), ", ")
	}, "[IPv4] SingleStack, [IPv4 IPv6] RequireDualStack, Invalid 422"},
	{"the ports of a Service are validated", func(ctx context.Context, c *Client) string {
		client := c.CoreV1().Services(c.Namespace)
		none, twice, unnamed := service("one"), service("one"), service("one")
		none.Spec.Ports = nil
		twice.Spec.Ports = append(twice.Spec.Ports, corev1.ServicePort{Name: "http", Port: 81})
		unnamed.Spec.Ports = append(unnamed.Spec.Ports, corev1.ServicePort{Port: 81})
		_, err1 := client.Create(ctx, none, metav1.CreateOptions{})
		_, err2 := client.Create(ctx, twice, metav1.CreateOptions{})
		_, err3 := client.Create(ctx, unnamed, metav1.CreateOptions{})
		return results(err1, err2, err3)
	}, "Invalid 422, Invalid 422, Invalid 422"},
	{"the generation of an EndpointSlice", func(ctx context.Context, c *Client) string {
		client := c.DiscoveryV1().EndpointSlices(c.Namespace)
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "one"}, AddressType: discoveryv1.AddressTypeIPv4,
		}
		first := need(client.Create(ctx, slice, metav1.CreateOptions{}))
		changed := first.DeepCopy()
		changed.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.64.0.1"}}}
		second := need(client.Update(ctx, changed, metav1.UpdateOptions{}))
		other := second.DeepCopy()
		other.AddressType = discoveryv1.AddressTypeIPv6
		_, err := client.Update(ctx, other, metav1.UpdateOptions{})
		return words(first.Generation, second.Generation, result(err))
	}, "1 2 Invalid 422"},
}

// custom are operations on custom resources.
var custom = []Operation{
	{"status and spec are written apart", func(ctx context.Context, c *Client) string {
		client := c.Dynamic.Resource(exports).Namespace(c.Namespace)
		begin := export("one")
		condition := []any{
			map[string]any{
				"type": "Valid", "status": "True", "reason": "Valid", "message": "",
				"lastTransitionTime": "2026-01-01T00:00:00Z",
			},
		}
		must(unstructured.SetNestedSlice(begin.Object, condition, "status", "conditions"))
		created := need(client.Create(ctx, begin, metav1.CreateOptions{}))
		_, atCreate, _ := unstructured.NestedSlice(created.Object, "status", "conditions")
		both := created.DeepCopy()
		must(unstructured.SetNestedSlice(both.Object, condition, "status", "conditions"))
		must(unstructured.SetNestedStringMap(both.Object, map[string]string{"a": "b"}, "spec",
			"exportedLabels"))
		byStatus := need(client.UpdateStatus(ctx, both, metav1.UpdateOptions{}))
		_, specByStatus, _ := unstructured.NestedStringMap(byStatus.Object, "spec", "exportedLabels")
		_, statusByStatus, _ := unstructured.NestedSlice(byStatus.Object, "status", "conditions")
		both.SetResourceVersion(byStatus.GetResourceVersion())
		unstructured.RemoveNestedField(both.Object, "status")
		byObject := need(client.Update(ctx, both, metav1.UpdateOptions{}))
		_, statusByObject, _ := unstructured.NestedSlice(byObject.Object, "status", "conditions")
		return words(atCreate, specByStatus, statusByStatus, statusByObject, created.GetGeneration(),
			byStatus.GetGeneration(), byObject.GetGeneration())
	}, "false false true true 1 1 2"},
	{"labels make no generation, an update needs a version, and unknown fields are pruned", func(ctx context.Context, c *Client) string {
		client, odd := c.Dynamic.Resource(exports).Namespace(c.Namespace), export("one")
		odd.Object["unknown"] = "field"
		created := need(client.Create(ctx, odd, metav1.CreateOptions{}))
		_, kept := created.Object["unknown"]
		created.SetLabels(map[string]string{"a": "b"})
		updated := need(client.Update(ctx, created, metav1.UpdateOptions{}))
		updated.SetResourceVersion("")
		_, err := client.Update(ctx, updated, metav1.UpdateOptions{})
		return words(kept, updated.GetGeneration(), result(err))
	}, "false 1 Invalid 422"},
	{"a version that is not served", func(ctx context.Context, c *Client) string {
		_, err := c.Dynamic.Resource(exports.GroupResource().WithVersion("v9")).Namespace(c.Namespace).List(ctx,
			metav1.ListOptions{})
		return result(err)
	}, "NotFound 404"},
	{"one object in both versions", func(ctx context.Context, c *Client) string {
		need(c.Dynamic.Resource(exports).Namespace(c.Namespace).Create(ctx, export("one"),
			metav1.CreateOptions{}))
		older := need(c.Dynamic.Resource(exports.GroupResource().WithVersion("v1alpha1")).Namespace(c.Namespace).Get(
			ctx, "one", metav1.GetOptions{}))
		return older.GetAPIVersion()
	}, "multicluster.x-k8s.io/v1alpha1"},
}
