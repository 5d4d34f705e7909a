// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// needed is what the plugin reads, and the plugin kubernetes does not.
var needed = []rbacv1.PolicyRule{
	{
		APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"serviceimports"},
		Verbs: []string{"list", "watch"},
	},
	{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
}

// grant grants needed to the service account of CoreDNS.
func (c *change) grant(ctx context.Context) error {
	client := c.Cluster.Kube.RbacV1()
	meta := metav1.ObjectMeta{Name: Rights, Labels: map[string]string{export.LabelManagedBy: cluster.FieldManager}}
	account := AccountOf(c.deployment)
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: needed}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Rights},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: account}},
	}
	create := metav1.CreateOptions{FieldManager: cluster.FieldManager, DryRun: cluster.DryRun(c.DryRun)}
	_, err := client.ClusterRoles().Create(ctx, role, create)
	made := err == nil
	if apierrors.IsAlreadyExists(err) {
		_, err = client.ClusterRoles().Update(ctx, role, metav1.UpdateOptions{
			FieldManager: cluster.FieldManager,
			DryRun:       cluster.DryRun(c.DryRun),
		})
	}
	if err != nil {
		return fmt.Errorf("ClusterRole %s: %w", Rights, err)
	}
	if made {
		c.undo = append(c.undo, func(ctx context.Context) error {
			return ignoreNotFound(client.ClusterRoles().Delete(ctx, Rights, metav1.DeleteOptions{DryRun: cluster.DryRun(c.DryRun)}))
		})
	}
	_, err = client.ClusterRoleBindings().Create(ctx, binding, create)
	switch {
	case err == nil:
		c.undo = append(c.undo, func(ctx context.Context) error {
			return ignoreNotFound(client.ClusterRoleBindings().Delete(ctx, Rights,
				metav1.DeleteOptions{DryRun: cluster.DryRun(c.DryRun)}))
		})
		c.Teller.Wrote(c.DryRun, "service account %s/%s can read ServiceImports", Namespace, account)
	case apierrors.IsAlreadyExists(err):
		_, err = client.ClusterRoleBindings().Update(ctx, binding,
			metav1.UpdateOptions{FieldManager: cluster.FieldManager, DryRun: cluster.DryRun(c.DryRun)})
	}
	if err != nil {
		return fmt.Errorf("ClusterRoleBinding %s: %w", Rights, err)
	}
	return nil
}

// AccountOf is the service account that CoreDNS runs as.
func AccountOf(deployment *appsv1.Deployment) string {
	if account := deployment.Spec.Template.Spec.ServiceAccountName; account != "" {
		return account
	}
	return "default"
}

// revoke reverts grant.
func (c *change) revoke(ctx context.Context) error {
	client := c.Cluster.Kube.RbacV1()
	options := metav1.DeleteOptions{DryRun: cluster.DryRun(c.DryRun)}
	if err := ignoreNotFound(client.ClusterRoleBindings().Delete(ctx, Rights, options)); err != nil {
		return err
	}
	return ignoreNotFound(client.ClusterRoles().Delete(ctx, Rights, options))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Needed are the rights that Enable grants.
func Needed() []manifest.Right {
	var rights []manifest.Right
	for _, rule := range needed {
		rights = append(rights, manifest.Expand(rule, "")...)
	}
	return rights
}
