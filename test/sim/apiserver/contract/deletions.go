// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var deletions = []Operation{
	{"preconditions of a deletion", func(ctx context.Context, c *Client) string {
		created := need(c.Maps.Create(ctx, configMap("one", "red"), metav1.CreateOptions{}))
		other, old := types.UID("another"), "1"
		err1 := c.Maps.Delete(ctx, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
		err2 := c.Maps.Delete(ctx, "one",
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &old}})
		err3 := c.Maps.Delete(ctx, "one", metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &created.UID, ResourceVersion: &created.ResourceVersion},
		})
		err4 := c.Maps.Delete(ctx, "one", metav1.DeleteOptions{})
		return results(err1, err2, err3, err4)
	}, "Conflict 409, Conflict 409, ok, NotFound 404"},
	{"a finalizer holds an object", func(ctx context.Context, c *Client) string {
		held := configMap("one", "red")
		held.Finalizers = []string{"example.org/held"}
		need(c.Maps.Create(ctx, held, metav1.CreateOptions{}))
		must(c.Maps.Delete(ctx, "one", metav1.DeleteOptions{}))
		waiting := need(c.Maps.Get(ctx, "one", metav1.GetOptions{}))
		deleting := waiting.DeletionTimestamp != nil
		waiting.Finalizers = nil
		need(c.Maps.Update(ctx, waiting, metav1.UpdateOptions{}))
		_, err := c.Maps.Get(ctx, "one", metav1.GetOptions{})
		return words(deleting, result(err))
	}, "true NotFound 404"},
	{"dependents are collected", func(ctx context.Context, c *Client) string {
		createOwned(ctx, c)
		must(c.Maps.Delete(ctx, "owner", metav1.DeleteOptions{}))
		until(ctx, func() bool {
			_, err := c.Maps.Get(ctx, "owned", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		return "gone"
	}, "gone"},
	{"a collection is deleted by label", func(ctx context.Context, c *Client) string {
		for name, color := range map[string]string{"one": "red", "two": "red", "three": "blue"} {
			need(c.Maps.Create(ctx, configMap(name, color), metav1.CreateOptions{}))
		}
		err := c.Maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "color=red"})
		_, one := c.Maps.Get(ctx, "one", metav1.GetOptions{})
		_, two := c.Maps.Get(ctx, "two", metav1.GetOptions{})
		_, three := c.Maps.Get(ctx, "three", metav1.GetOptions{})
		return results(err, one, two, three)
	}, "ok, NotFound 404, NotFound 404, ok"},
	{"a namespace that is being deleted", func(ctx context.Context, c *Client) string {
		held := configMap("one", "red")
		held.Finalizers = []string{"example.org/held"}
		need(c.Maps.Create(ctx, held, metav1.CreateOptions{}))
		must(c.CoreV1().Namespaces().Delete(ctx, c.Namespace, metav1.DeleteOptions{}))
		var late error
		until(ctx, func() bool {
			object, err := c.Maps.Get(ctx, "one", metav1.GetOptions{})
			return err == nil && object.DeletionTimestamp != nil
		})
		_, late = c.Maps.Create(ctx, configMap("two", "red"), metav1.CreateOptions{})
		cause := apierrors.HasStatusCause(late, corev1.NamespaceTerminatingCause)
		need(c.Maps.Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{}))
		until(ctx, func() bool {
			_, err := c.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		return words(result(late), cause)
	}, "Forbidden 403 true"},
	{"a name can be used again", func(ctx context.Context, c *Client) string {
		first := need(c.Maps.Create(ctx, configMap("one", "red"), metav1.CreateOptions{}))
		must(c.Maps.Delete(ctx, "one", metav1.DeleteOptions{}))
		second := need(c.Maps.Create(ctx, configMap("one", "red"), metav1.CreateOptions{}))
		return words(first.UID != second.UID)
	}, "true"},
}

// createOwned creates two ConfigMaps: owner, and owned, whose owner it is.
func createOwned(ctx context.Context, c *Client) {
	owner := need(c.Maps.Create(ctx, configMap("owner", "red"), metav1.CreateOptions{}))
	owned := configMap("owned", "red")
	owned.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
	}
	need(c.Maps.Create(ctx, owned, metav1.CreateOptions{}))
}
