// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fill creates ConfigMaps, all of one color, and returns the version of the last.
func fill(ctx context.Context, c *Client, color string, names ...string) (version string, err error) {
	for _, name := range names {
		created, err := c.CoreV1().ConfigMaps(c.Namespace).Create(ctx, configMap(name, color), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		version = created.ResourceVersion
	}
	return version, nil
}

func namesOf(list *corev1.ConfigMapList) string {
	names := make([]string, len(list.Items))
	for i, each := range list.Items {
		names[i] = each.Name
	}
	return strings.Join(names, " ")
}

// versionOf is the resourceVersion of an object as a number, 0 for none.
func versionOf(object metav1.Object) uint64 {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64) // 0 fails the operation
	return version
}

const ours = "color" // leaves out what the control plane creates in each namespace

var lists = []Operation{
	{"a list is in the order of names, and selects", func(ctx context.Context, c *Client) (string, error) {
		if _, err := fill(ctx, c, "red", "b", "a"); err != nil {
			return "", err
		}
		if _, err := fill(ctx, c, "blue", "c"); err != nil {
			return "", err
		}
		client := c.CoreV1().ConfigMaps(c.Namespace)
		all, err := client.List(ctx, metav1.ListOptions{LabelSelector: ours})
		if err != nil {
			return "", err
		}
		red, err := client.List(ctx, metav1.ListOptions{LabelSelector: "color=red"})
		if err != nil {
			return "", err
		}
		one, err := client.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=c"})
		if err != nil {
			return "", err
		}
		return namesOf(all) + "; " + namesOf(red) + "; " + namesOf(one), nil
	}, "a b c; a b; c"},
	{"pages are of one version", func(ctx context.Context, c *Client) (string, error) {
		if _, err := fill(ctx, c, "red", "a", "b", "c"); err != nil {
			return "", err
		}
		client := c.CoreV1().ConfigMaps(c.Namespace)
		first, err := client.List(ctx, metav1.ListOptions{LabelSelector: ours, Limit: 2})
		if err != nil {
			return "", err
		}
		if _, err := fill(ctx, c, "red", "d"); err != nil {
			return "", err
		}
		if err := client.Delete(ctx, "c", metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		second, err := client.List(ctx, metav1.ListOptions{LabelSelector: ours, Limit: 2, Continue: first.Continue})
		if err != nil {
			return "", err
		}
		return words(namesOf(first)+"; "+namesOf(second)+";", second.Continue == "",
			first.ResourceVersion == second.ResourceVersion), nil
	}, "a b; c; true true"},
	{"a list at a version to come", func(ctx context.Context, c *Client) (string, error) {
		_, err := c.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "999999999"})
		return result(err), nil
	}, "Timeout 504"},
}

var watches = []Operation{
	{"a watch goes on after a version", func(ctx context.Context, c *Client) (string, error) {
		version, err := fill(ctx, c, "red", "a")
		if err != nil {
			return "", err
		}
		client := c.CoreV1().ConfigMaps(c.Namespace)
		w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: ours})
		if err != nil {
			return "", err
		}
		defer w.Stop()
		if _, err := fill(ctx, c, "red", "b"); err != nil {
			return "", err
		}
		if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		return events(ctx, w, 2)
	}, "ADDED b, DELETED a"},
	{"a watch from an older version sends again what another one sent", func(ctx context.Context, c *Client) (string,
		error,
	) {
		version, err := fill(ctx, c, "red", "a")
		if err != nil {
			return "", err
		}
		client := c.CoreV1().ConfigMaps(c.Namespace)
		last, err := fill(ctx, c, "red", "b")
		if err != nil {
			return "", err
		}
		if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		var texts []string
		for range 2 {
			w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: ours})
			if err != nil {
				return "", err
			}
			added, deleted := <-w.ResultChan(), <-w.ResultChan()
			w.Stop()
			one, ok1 := added.Object.(*corev1.ConfigMap)
			other, ok2 := deleted.Object.(*corev1.ConfigMap)
			texts = append(texts, words(added.Type, deleted.Type, ok1 && one.ResourceVersion == last,
				ok2 && versionOf(other) > versionOf(one)))
		}
		return strings.Join(texts, ", "), nil
	}, "ADDED DELETED true true, ADDED DELETED true true"},
	{"a watch of no version begins with what exists", func(ctx context.Context, c *Client) (string, error) {
		if _, err := fill(ctx, c, "red", "a"); err != nil {
			return "", err
		}
		w, err := c.CoreV1().ConfigMaps(c.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: ours})
		if err != nil {
			return "", err
		}
		defer w.Stop()
		if _, err := fill(ctx, c, "red", "b"); err != nil {
			return "", err
		}
		return events(ctx, w, 2)
	}, "ADDED a, ADDED b"},
	{"a list that is streamed ends with a bookmark", func(ctx context.Context, c *Client) (string, error) {
		if _, err := fill(ctx, c, "red", "a", "b"); err != nil {
			return "", err
		}
		yes := true
		w, err := c.CoreV1().ConfigMaps(c.Namespace).Watch(ctx, metav1.ListOptions{
			LabelSelector: ours, SendInitialEvents: &yes, AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		if err != nil {
			return "", err
		}
		defer w.Stop()
		return events(ctx, w, 3)
	}, "ADDED a, ADDED b, BOOKMARK initial"},
	{"who selects sees objects come and go", func(ctx context.Context, c *Client) (string, error) {
		version, err := fill(ctx, c, "red", "a")
		if err != nil {
			return "", err
		}
		client := c.CoreV1().ConfigMaps(c.Namespace)
		w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: "color=blue"})
		if err != nil {
			return "", err
		}
		defer w.Stop()
		for _, color := range []string{"blue", "blue", "red"} {
			object, err := client.Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			object.Labels["color"] = color
			object.Data = map[string]string{"version": object.ResourceVersion}
			if _, err := client.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
				return "", err
			}
		}
		return events(ctx, w, 3)
	}, "ADDED a, MODIFIED a, DELETED a"},
	{"a watch ends after its time", func(ctx context.Context, c *Client) (string, error) {
		version, err := fill(ctx, c, "red", "a")
		if err != nil {
			return "", err
		}
		one := int64(1)
		w, err := c.CoreV1().ConfigMaps(c.Namespace).Watch(ctx,
			metav1.ListOptions{ResourceVersion: version, LabelSelector: ours, TimeoutSeconds: &one})
		if err != nil {
			return "", err
		}
		defer w.Stop()
		return events(ctx, w, 1)
	}, "end"},
	{"a watch from a version to come sends nothing before", func(ctx context.Context, c *Client) (string, error) {
		version, err := fill(ctx, c, "red", "a")
		if err != nil {
			return "", err
		}
		one := int64(1)
		w, err := c.CoreV1().ConfigMaps(c.Namespace).Watch(ctx,
			metav1.ListOptions{ResourceVersion: version + "000", LabelSelector: ours, TimeoutSeconds: &one})
		if err != nil {
			return "", err
		}
		defer w.Stop()
		if _, err := fill(ctx, c, "red", "b"); err != nil {
			return "", err
		}
		return events(ctx, w, 1)
	}, "end"},
	{"custom resources are watched", func(ctx context.Context, c *Client) (string, error) {
		client := c.Dynamic.Resource(imports).Namespace(c.Namespace)
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			return "", err
		}
		defer w.Stop()
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": imports.GroupVersion().String(), "kind": "ServiceImport",
			"metadata": map[string]any{"name": "one"},
			"spec":     map[string]any{"type": "ClusterSetIP", "ports": []any{}},
		}}
		if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return "", err
		}
		return events(ctx, w, 1)
	}, "ADDED one"},
}
