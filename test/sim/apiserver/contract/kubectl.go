// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/openapi"
)

// kubectl are the operations that kubectl is made of, and that no controller of ours does.
var kubectl = []Operation{
	{"a strategic merge patch", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().Services(c.Namespace)
		if _, err := client.Create(ctx, service("one"), metav1.CreateOptions{}); err != nil {
			return "", err
		}
		patched, err := client.Patch(ctx, "one", types.StrategicMergePatchType,
			[]byte(`{"spec":{"ports":[{"name":"more","port":81}]}}`), metav1.PatchOptions{})
		if err != nil {
			return "", err
		}
		var names []string
		for _, each := range patched.Spec.Ports {
			names = append(names, each.Name)
		}
		exported := c.Dynamic.Resource(exports).Namespace(c.Namespace)
		if _, err := exported.Create(ctx, export("one"), metav1.CreateOptions{}); err != nil {
			return "", err
		}
		_, err = exported.Patch(ctx, "one", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
		slices.Sort(names)
		return words(names, result(err)), nil
	}, "[http more] UnsupportedMediaType 415"},
	{"the status of a pod is patched by the type of a condition", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().Pods(c.Namespace)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "one"},
			Spec: corev1.PodSpec{
				NodeName: "nowhere", Containers: []corev1.Container{{Name: "one", Image: "one"}},
			},
		}
		// A namespace has its default service account after a moment.
		if err := until(ctx, func() bool {
			_, err := client.Create(ctx, pod, metav1.CreateOptions{})
			return err == nil
		}); err != nil {
			return "", err
		}
		var got []string
		for _, each := range []string{"Ready=True", "Other=True", "Ready=False"} {
			name, status, _ := strings.Cut(each, "=")
			patched, err := client.Patch(ctx, "one", types.StrategicMergePatchType,
				fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q}]}}`, name, status),
				metav1.PatchOptions{}, "status")
			if err != nil {
				return "", err
			}
			got = got[:0]
			for _, each := range patched.Status.Conditions {
				got = append(got, string(each.Type)+"="+string(each.Status))
			}
		}
		slices.Sort(got)
		return words(got), nil
	}, "[Other=True Ready=False]"},
	{"server-side apply creates and merges", func(ctx context.Context, c *Client) (string, error) {
		options := metav1.ApplyOptions{FieldManager: "contract"}
		client := c.Dynamic.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(c.Namespace)
		applied := func(data map[string]any) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": data,
			}}
		}
		if _, err := client.Apply(ctx, "one", applied(map[string]any{"a": "1"}), options); err != nil {
			return "", err
		}
		second, err := client.Apply(ctx, "one", applied(map[string]any{"a": "2", "b": "3"}), options)
		if err != nil {
			return "", err
		}
		data, _, _ := unstructured.NestedStringMap(second.Object, "data")
		exported := c.Dynamic.Resource(exports).Namespace(c.Namespace)
		first, err1 := exported.Apply(ctx, "one", export("one"), options)
		again, err2 := exported.Apply(ctx, "one", export("one"), options)
		return words(data, results(err1, err2), first.GetUID() == again.GetUID(),
			first.GetResourceVersion() == again.GetResourceVersion()), nil
	}, "map[a:2 b:3] ok, ok true true"},
	{"the scale of a Deployment", func(ctx context.Context, c *Client) (string, error) {
		client := c.AppsV1().Deployments(c.Namespace)
		labels := map[string]string{"app": "one"}
		created, err := client.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "one"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "one"}}},
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		before, err := client.GetScale(ctx, "one", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if _, err := client.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`),
			metav1.PatchOptions{}, "scale"); err != nil {
			return "", err
		}
		after, err := client.Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return words(*created.Spec.Replicas, created.Generation, before.Spec.Replicas, before.Status.Selector,
			*after.Spec.Replicas, after.Generation), nil
	}, "1 1 1 app=one 0 2"},
	{"discovery", func(_ context.Context, c *Client) (string, error) {
		var texts []string
		for _, version := range []string{mcs.String(), "apps/v1"} {
			list, err := c.Discovery().ServerResourcesForGroupVersion(version)
			if err != nil {
				return "", err
			}
			for _, each := range list.APIResources {
				if name, _, _ := strings.Cut(each.Name, "/"); name == "serviceexports" || name == "deployments" {
					texts = append(texts, words(each.Name, each.Kind, each.Namespaced, each.ShortNames, each.Categories))
				}
			}
		}
		slices.Sort(texts)
		groups, err := c.Discovery().ServerGroups()
		if err != nil {
			return "", err
		}
		for _, each := range groups.Groups {
			if each.Name == mcs.Group {
				texts = append(texts, each.PreferredVersion.Version)
			}
		}
		return strings.Join(texts, "\n"), nil
	}, `deployments Deployment true [deploy] [all]
deployments/scale Scale true [] []
deployments/status Deployment true [] []
serviceexports ServiceExport true [svcex svcexport] []
serviceexports/status ServiceExport true [] []
v1beta1`},
	{"OpenAPI says that fields of patches are validated", func(_ context.Context, c *Client) (string, error) {
		paths, err := c.Discovery().OpenAPIV3().Paths()
		if err != nil {
			return "", err
		}
		var texts []string
		for _, each := range []struct{ path, kind string }{
			{"api/v1", "Service"}, {"apis/apps/v1", "Deployment"}, {"apis/" + mcs.String(), "ServiceExport"},
		} {
			found, err := validates(paths[each.path], each.kind)
			if err != nil {
				return "", fmt.Errorf("%s: %w", each.path, err)
			}
			texts = append(texts, words(each.kind, found))
		}
		return strings.Join(texts, ", "), nil
	}, "Service true, Deployment true, ServiceExport true"},
}

// validates reports whether the document of a version says that patches of a kind know the parameter fieldValidation.
func validates(version openapi.GroupVersion, kind string) (bool, error) {
	if version == nil {
		return false, fmt.Errorf("is not described")
	}
	raw, err := version.Schema("application/json")
	if err != nil {
		return false, err
	}
	document := struct {
		Paths map[string]struct {
			Patch *struct {
				Parameters []struct{ Name, In string }
				Of         struct{ Kind string } `json:"x-kubernetes-group-version-kind"`
			}
		}
	}{}
	if err := json.Unmarshal(raw, &document); err != nil {
		return false, err
	}
	for _, each := range document.Paths {
		if each.Patch == nil || each.Patch.Of.Kind != kind {
			continue
		}
		for _, parameter := range each.Patch.Parameters {
			if parameter.Name == "fieldValidation" && parameter.In == "query" {
				return true, nil
			}
		}
	}
	return false, nil
}
