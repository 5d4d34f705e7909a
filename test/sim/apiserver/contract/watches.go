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

// fill creates ConfigMaps with the same color, and returns the version of the last.
func fill(ctx context.Context, c *Client, color string, names ...string) (version string) {
	for _, name := range names {
		version = need(c.Maps.Create(ctx, configMap(name, color), metav1.CreateOptions{})).ResourceVersion
	}
	return version
}

func namesOf(list *corev1.ConfigMapList) string {
	names := make([]string, len(list.Items))
	for i, each := range list.Items {
		names[i] = each.Name
	}
	return strings.Join(names, " ")
}

// versionOf returns the resourceVersion of an object as a number, 0 if it is not one.
func versionOf(object metav1.Object) uint64 {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64) // 0 makes the operation fail
	return version
}

const ours = "color" // excludes the objects that the control plane creates in each namespace

var lists = []Operation{
	{"a list is in the order of names, and selects", func(ctx context.Context, c *Client) string {
		fill(ctx, c, "red", "b", "a")
		fill(ctx, c, "blue", "c")
		all := need(c.Maps.List(ctx, metav1.ListOptions{LabelSelector: ours}))
		red := need(c.Maps.List(ctx, metav1.ListOptions{LabelSelector: "color=red"}))
		one := need(c.Maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=c"}))
		return namesOf(all) + "; " + namesOf(red) + "; " + namesOf(one)
	}, "a b c; a b; c"},
	{"pages are of one version", func(ctx context.Context, c *Client) string {
		fill(ctx, c, "red", "a", "b", "c")
		first := need(c.Maps.List(ctx, metav1.ListOptions{LabelSelector: ours, Limit: 2}))
		fill(ctx, c, "red", "d")
		must(c.Maps.Delete(ctx, "c", metav1.DeleteOptions{}))
		second := need(c.Maps.List(ctx, metav1.ListOptions{LabelSelector: ours, Limit: 2, Continue: first.Continue}))
		return words(namesOf(first)+"; "+namesOf(second)+";", second.Continue == "",
			first.ResourceVersion == second.ResourceVersion)
	}, "a b; c; true true"},
}

var watches = []Operation{
	{"a watch goes on after a version", func(ctx context.Context, c *Client) string {
		version := fill(ctx, c, "red", "a")
		w := need(c.Maps.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: ours}))
		defer w.Stop()
		fill(ctx, c, "red", "b")
		must(c.Maps.Delete(ctx, "a", metav1.DeleteOptions{}))
		return events(ctx, w, 2)
	}, "ADDED b, DELETED a"},
	{"a watch from an older version sends again what another one sent", func(ctx context.Context, c *Client) string {
		version := fill(ctx, c, "red", "a")
		last := fill(ctx, c, "red", "b")
		must(c.Maps.Delete(ctx, "a", metav1.DeleteOptions{}))
		var texts []string
		for range 2 {
			w := need(c.Maps.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: ours}))
			added, deleted := <-w.ResultChan(), <-w.ResultChan()
			w.Stop()
			one, ok1 := added.Object.(*corev1.ConfigMap)
			other, ok2 := deleted.Object.(*corev1.ConfigMap)
			texts = append(texts, words(added.Type, deleted.Type, ok1 && one.ResourceVersion == last,
				ok2 && versionOf(other) > versionOf(one)))
		}
		return strings.Join(texts, ", ")
	}, "ADDED DELETED true true, ADDED DELETED true true"},
	{"a watch of no version begins with what exists", func(ctx context.Context, c *Client) string {
		fill(ctx, c, "red", "a")
		w := need(c.Maps.Watch(ctx, metav1.ListOptions{LabelSelector: ours}))
		defer w.Stop()
		fill(ctx, c, "red", "b")
		return events(ctx, w, 2)
	}, "ADDED a, ADDED b"},
	{"a list that is streamed ends with a bookmark", func(ctx context.Context, c *Client) string {
		fill(ctx, c, "red", "a", "b")
		w := need(c.Maps.Watch(ctx, metav1.ListOptions{
			LabelSelector: ours, SendInitialEvents: new(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}))
		defer w.Stop()
		return events(ctx, w, 3)
	}, "ADDED a, ADDED b, BOOKMARK initial"},
	{"who selects sees objects come and go", func(ctx context.Context, c *Client) string {
		version := fill(ctx, c, "red", "a")
		w := need(c.Maps.Watch(ctx, metav1.ListOptions{ResourceVersion: version, LabelSelector: "color=blue"}))
		defer w.Stop()
		for _, color := range []string{"blue", "blue", "red"} {
			object := need(c.Maps.Get(ctx, "a", metav1.GetOptions{}))
			object.Labels["color"] = color
			object.Data = map[string]string{"version": object.ResourceVersion}
			need(c.Maps.Update(ctx, object, metav1.UpdateOptions{}))
		}
		return events(ctx, w, 3)
	}, "ADDED a, MODIFIED a, DELETED a"},
	{"a watch ends after its time", func(ctx context.Context, c *Client) string {
		version := fill(ctx, c, "red", "a")
		w := need(c.Maps.Watch(ctx,
			metav1.ListOptions{ResourceVersion: version, LabelSelector: ours, TimeoutSeconds: new(int64(1))}))
		defer w.Stop()
		return events(ctx, w, 1)
	}, "end"},
	{"custom resources are watched", func(ctx context.Context, c *Client) string {
		client := c.Dynamic.Resource(imports).Namespace(c.Namespace)
		list := need(client.List(ctx, metav1.ListOptions{}))
		w := need(client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}))
		defer w.Stop()
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": imports.GroupVersion().String(), "kind": "ServiceImport",
			"metadata": map[string]any{"name": "one"},
			"spec":     map[string]any{"type": "ClusterSetIP", "ports": []any{}},
		}}
		need(client.Create(ctx, object, metav1.CreateOptions{}))
		return events(ctx, w, 1)
	}, "ADDED one"},
}
