// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// demo are operations that the demo and kubectl clusterset need, but the controllers do not.
var demo = []Operation{
	{"the status of a pod is patched by the type of a condition", func(ctx context.Context, c *Client) string {
		client := c.CoreV1().Pods(c.Namespace)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "one"},
			Spec: corev1.PodSpec{
				NodeName: "nowhere", Containers: []corev1.Container{{Name: "one", Image: "one"}},
			},
		}
		// The default service account of a namespace exists after a moment.
		until(ctx, func() bool {
			_, err := client.Create(ctx, pod, metav1.CreateOptions{})
			return err == nil
		})
		var got []string
		for _, each := range []string{"Ready=True", "Other=True", "Ready=False"} {
			name, status, _ := strings.Cut(each, "=")
			patched := need(client.Patch(ctx, "one", types.StrategicMergePatchType,
				fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q}]}}`, name, status),
				metav1.PatchOptions{}, "status"))
			got = got[:0]
			for _, each := range patched.Status.Conditions {
				got = append(got, string(each.Type)+"="+string(each.Status))
			}
		}
		slices.Sort(got)
		return words(got)
	}, "[Other=True Ready=False]"},
	{"server-side apply creates and merges", func(ctx context.Context, c *Client) string {
		options := metav1.ApplyOptions{FieldManager: "contract"}
		client := c.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(c.Namespace)
		applied := func(data map[string]any) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": data,
			}}
		}
		need(client.Apply(ctx, "one", applied(map[string]any{"a": "1"}), options))
		second := need(client.Apply(ctx, "one", applied(map[string]any{"a": "2", "b": "3"}), options))
		data, _, _ := unstructured.NestedStringMap(second.Object, "data")
		exported := c.Dynamic.Resource(exports).Namespace(c.Namespace)
		first, err1 := exported.Apply(ctx, "one", export("one"), options)
		again, err2 := exported.Apply(ctx, "one", export("one"), options)
		return words(data, results(err1, err2), first.GetUID() == again.GetUID(),
			first.GetResourceVersion() == again.GetResourceVersion())
	}, "map[a:2 b:3] ok, ok true true"},
	{"the scale of a Deployment", func(ctx context.Context, c *Client) string {
		client := c.AppsV1().Deployments(c.Namespace)
		labels := map[string]string{"app": "one"}
		created := need(client.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "one"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "one"}}},
				},
			},
		}, metav1.CreateOptions{}))
		before := need(client.GetScale(ctx, "one", metav1.GetOptions{}))
		need(client.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`),
			metav1.PatchOptions{}, "scale"))
		after := need(client.Get(ctx, "one", metav1.GetOptions{}))
		return words(*created.Spec.Replicas, created.Generation, before.Spec.Replicas, before.Status.Selector,
			*after.Spec.Replicas, after.Generation)
	}, "1 1 1 app=one 0 2"},
	{"discovery", func(_ context.Context, c *Client) string {
		var texts []string
		for _, version := range []string{mcs.String(), "apps/v1"} {
			list := need(c.Discovery().ServerResourcesForGroupVersion(version))
			for _, each := range list.APIResources {
				if name, _, _ := strings.Cut(each.Name, "/"); name == "serviceexports" || name == "deployments" {
					texts = append(texts, words(each.Name, each.SingularName, each.Kind, each.Namespaced))
				}
			}
		}
		slices.Sort(texts)
		groups := need(c.Discovery().ServerGroups())
		for _, each := range groups.Groups {
			if each.Name == mcs.Group {
				texts = append(texts, each.PreferredVersion.Version)
			}
		}
		return strings.Join(texts, "\n")
	}, `deployments deployment Deployment true
deployments/scale  Scale true
deployments/status  Deployment true
serviceexports serviceexport ServiceExport true
serviceexports/status  ServiceExport true
v1beta1`},
	{"a token that is issued, and one that is unknown", func(ctx context.Context, c *Client) string {
		accounts := c.CoreV1().ServiceAccounts(c.Namespace)
		need(accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{}))
		issued := need(accounts.CreateToken(ctx, "one", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		var errs []error
		for _, token := range []string{issued.Status.Token, "nobody's"} {
			config := rest.CopyConfig(c.Config)
			config.BearerToken = token
			_, err := need(kubernetes.NewForConfig(config)).Discovery().ServerResourcesForGroupVersion("v1")
			errs = append(errs, err)
		}
		return results(errs...)
	}, "ok, Unauthorized 401"},
}
