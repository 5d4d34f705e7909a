// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// access are operations of service accounts, which have no rights but those of roles.
var access = []Operation{
	{"a token has the rights of its service account", func(ctx context.Context, c *Client) string {
		client := c.account(ctx, "reader", rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: c.Namespace,
		}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}})
		maps := client.CoreV1().ConfigMaps(c.Namespace)
		until(ctx, func() bool {
			_, err := maps.List(ctx, metav1.ListOptions{})
			return err == nil
		})
		_, err1 := maps.Get(ctx, "one", metav1.GetOptions{})
		_, err2 := maps.Create(ctx, configMap("one", "red"), metav1.CreateOptions{})
		_, err3 := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		_, err4 := client.CoreV1().Secrets(c.Namespace).List(ctx, metav1.ListOptions{})
		_, err5 := client.Discovery().ServerVersion()
		return results(err1, err2, err3, err4, err5)
	}, "Forbidden 403, Forbidden 403, Forbidden 403, Forbidden 403, ok"},
	{"a rule for one name allows lists and watches of that name", func(ctx context.Context, c *Client) string {
		client := c.account(ctx, "reader", rbacv1.Subject{
			Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + c.Namespace, APIGroup: rbacv1.GroupName,
		}, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"one"},
			Verbs: []string{"list", "watch"},
		})
		maps := client.CoreV1().ConfigMaps(c.Namespace)
		until(ctx, func() bool {
			_, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=one"})
			return err == nil
		})
		w, err1 := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=one"})
		if err1 == nil {
			w.Stop()
		}
		_, err2 := maps.List(ctx, metav1.ListOptions{})
		_, err3 := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=two"})
		return results(err1, err2, err3)
	}, "ok, Forbidden 403, Forbidden 403"},
	{"a token that is unknown, or whose account is deleted", func(ctx context.Context, c *Client) string {
		client := c.account(ctx, "reader", rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Name: "reader", Namespace: c.Namespace,
		})
		stranger := c.as("nobody's")
		_, err1 := stranger.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{})
		_, err2 := client.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{})
		must(c.CoreV1().ServiceAccounts(c.Namespace).Delete(ctx, "reader", metav1.DeleteOptions{}))
		until(ctx, func() bool {
			_, err := client.CoreV1().ConfigMaps(c.Namespace).List(ctx, metav1.ListOptions{})
			return apierrors.IsUnauthorized(err)
		})
		return results(err1, err2)
	}, "Unauthorized 401, Forbidden 403"},
}

// account creates a service account, and a role with rules that is bound to a subject, and returns a client with a token
// of the account.
func (c *Client) account(ctx context.Context, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) kubernetes.Interface {
	meta, options := metav1.ObjectMeta{Name: name}, metav1.CreateOptions{}
	accounts := c.CoreV1().ServiceAccounts(c.Namespace)
	need(accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, options))
	need(c.RbacV1().Roles(c.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, options))
	need(c.RbacV1().RoleBindings(c.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, options))
	return c.as(need(accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{}, options)).Status.Token)
}

// as is a client with another token.
func (c *Client) as(token string) kubernetes.Interface {
	config := rest.CopyConfig(c.Config)
	config.BearerToken = token
	return need(kubernetes.NewForConfig(config))
}
