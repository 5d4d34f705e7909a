// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

var deletions = []Operation{
	{"preconditions of a deletion", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		created, err := client.Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		other, old := types.UID("another"), "1"
		err1 := client.Delete(ctx, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
		err2 := client.Delete(ctx, "one",
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &old}})
		err3 := client.Delete(ctx, "one", metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &created.UID, ResourceVersion: &created.ResourceVersion},
		})
		err4 := client.Delete(ctx, "one", metav1.DeleteOptions{})
		return results(err1, err2, err3, err4), nil
	}, "Conflict 409, Conflict 409, ok, NotFound 404"},
	{"a finalizer holds an object", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		held := configMap("one", "red")
		held.Finalizers = []string{"example.org/held"}
		if _, err := client.Create(ctx, held, metav1.CreateOptions{}); err != nil {
			return "", err
		}
		if err := client.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		waiting, err := client.Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		deleting := waiting.DeletionTimestamp != nil
		waiting.Finalizers = nil
		if _, err := client.Update(ctx, waiting, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		_, err = client.Get(ctx, "one", metav1.GetOptions{})
		return words(deleting, result(err)), nil
	}, "true NotFound 404"},
	{"dependents are collected", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		if err := createOwned(ctx, client); err != nil {
			return "", err
		}
		if err := client.Delete(ctx, "owner", metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		return "gone", until(ctx, func() bool {
			_, err := client.Get(ctx, "owned", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}, "gone"},
	{"orphans stay", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		if err := createOwned(ctx, client); err != nil {
			return "", err
		}
		policy := metav1.DeletePropagationOrphan
		if err := client.Delete(ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			return "", err
		}
		return "free", until(ctx, func() bool {
			_, gone := client.Get(ctx, "owner", metav1.GetOptions{})
			orphan, err := client.Get(ctx, "owned", metav1.GetOptions{})
			return apierrors.IsNotFound(gone) && err == nil && len(orphan.OwnerReferences) == 0
		})
	}, "free"},
	{"a collection is deleted by label", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		for name, color := range map[string]string{"one": "red", "two": "red", "three": "blue"} {
			if _, err := client.Create(ctx, configMap(name, color), metav1.CreateOptions{}); err != nil {
				return "", err
			}
		}
		err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "color=red"})
		_, one := client.Get(ctx, "one", metav1.GetOptions{})
		_, two := client.Get(ctx, "two", metav1.GetOptions{})
		_, three := client.Get(ctx, "three", metav1.GetOptions{})
		return results(err, one, two, three), nil
	}, "ok, NotFound 404, NotFound 404, ok"},
	{"a namespace that is being deleted", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		held := configMap("one", "red")
		held.Finalizers = []string{"example.org/held"}
		if _, err := client.Create(ctx, held, metav1.CreateOptions{}); err != nil {
			return "", err
		}
		if err := c.CoreV1().Namespaces().Delete(ctx, c.Namespace, metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		var late error
		if err := until(ctx, func() bool {
			object, err := client.Get(ctx, "one", metav1.GetOptions{})
			return err == nil && object.DeletionTimestamp != nil
		}); err != nil {
			return "", err
		}
		_, late = client.Create(ctx, configMap("two", "red"), metav1.CreateOptions{})
		cause := apierrors.HasStatusCause(late, corev1.NamespaceTerminatingCause)
		if _, err := client.Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{}); err != nil {
			return "", err
		}
		return words(result(late), cause), until(ctx, func() bool {
			_, err := c.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}, "Forbidden 403 true"},
	{"a name can be used again", func(ctx context.Context, c *Client) (string, error) {
		client := c.CoreV1().ConfigMaps(c.Namespace)
		first, err := client.Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		if err := client.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
			return "", err
		}
		second, err := client.Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return words(first.UID != second.UID), nil
	}, "true"},
}

// createOwned creates a ConfigMap and one that it owns: owner and owned.
func createOwned(ctx context.Context, client corev1client.ConfigMapInterface) error {
	owner, err := client.Create(ctx, configMap("owner", "red"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	owned := configMap("owned", "red")
	owned.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
	}
	_, err = client.Create(ctx, owned, metav1.CreateOptions{})
	return err
}
