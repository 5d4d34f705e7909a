// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

// account creates the ServiceAccount with which a reader reads the cluster, and the right of that account to request its
// own tokens. It reads what all accounts of the namespace may read. Its Role goes with it.
func (i Issuer) account(ctx context.Context, reader string) error {
	name, labels := names.Account(reader), map[string]any{names.ReaderLabel: reader, names.ManagedBy: manager}
	account := object("v1", "ServiceAccount", i.Of.Namespace, name, labels)
	account.Object["automountServiceAccountToken"] = false
	if err := manifest.Apply(ctx, i.Of.Dynamic, []*unstructured.Unstructured{account}, manager, i.DryRun); err != nil {
		return fmt.Errorf("context %s: create the account of %s: %w", i.Of.Context, reader, err)
	}
	owner := map[string]any{}
	if i.DryRun == nil {
		made, err := i.Of.Kube.CoreV1().ServiceAccounts(i.Of.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("context %s: %w", i.Of.Context, err)
		}
		owner = map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "name": name, "uid": string(made.UID)}
	}
	err := manifest.Apply(ctx, i.Of.Dynamic, allow(i.Of.Namespace, name, labels, owner, name, map[string]any{
		"apiGroups": []any{""}, "resources": []any{"serviceaccounts/token"}, "resourceNames": []any{name},
		"verbs": []any{"create"},
	}), manager, i.DryRun)
	if err != nil {
		return fmt.Errorf("context %s: allow the account of %s to renew its token: %w", i.Of.Context, reader, err)
	}
	return nil
}

// controllerAccount is the ServiceAccount of the controller.
const controllerAccount = "clusterset-controller"

// allowRenewal allows the controller of the reader to replace the token in the Secret of the source, and nothing else. The
// Role goes with the Secret.
func (o Options) allowRenewal(ctx context.Context, l *peering) error {
	owner := map[string]any{}
	if !o.DryRun {
		owner = map[string]any{"apiVersion": "v1", "kind": "Secret", "name": l.secret.Name, "uid": string(l.secret.UID)}
	}
	err := manifest.Apply(ctx, l.reader.Dynamic, allow(l.reader.Namespace, "clusterset-renew-"+l.secret.Name,
		map[string]any{names.ClusterLabel: l.sourceID, names.ManagedBy: manager}, owner, controllerAccount,
		map[string]any{
			"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{l.secret.Name},
			"verbs": []any{"update"},
		}), manager, cluster.DryRun(o.DryRun))
	if err != nil {
		return fmt.Errorf("context %s: allow the controller to renew the token for %s: %w", l.reader.Context, l.sourceID, err)
	}
	return nil
}

// allow returns a Role with a rule, and its binding to a ServiceAccount of the namespace. Both belong to the owner, if it has
// a name.
func allow(namespace, name string, labels, owner map[string]any, account string, rule map[string]any) []*unstructured.Unstructured {
	const group = "rbac.authorization.k8s.io"
	role := object(group+"/v1", "Role", namespace, name, labels)
	role.Object["rules"] = []any{rule}
	binding := object(group+"/v1", "RoleBinding", namespace, name, labels)
	binding.Object["roleRef"] = map[string]any{"apiGroup": group, "kind": "Role", "name": name}
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": namespace}}
	objects := []*unstructured.Unstructured{role, binding}
	for _, each := range objects {
		if len(owner) > 0 {
			each.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
		}
	}
	return objects
}

func object(version, kind, namespace, name string, labels map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": labels},
	}}
}

// Revoke deletes the ServiceAccount of a reader, or those of all readers if it is empty, which revokes their tokens. It
// returns their number.
func Revoke(ctx context.Context, of *cluster.Cluster, reader string, dryRun []string) (int, error) {
	accounts := of.Kube.CoreV1().ServiceAccounts(of.Namespace)
	list, err := accounts.List(ctx, metav1.ListOptions{LabelSelector: names.ReaderLabel})
	if err != nil {
		return 0, fmt.Errorf("context %s: list the ServiceAccounts of readers: %w", of.Context, err)
	}
	count := 0
	for i := range list.Items {
		id := list.Items[i].Labels[names.ReaderLabel]
		if reader != "" && id != reader || list.Items[i].Name != names.Account(id) {
			continue
		}
		if err := accounts.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{DryRun: dryRun}); err != nil {
			return count, fmt.Errorf("context %s: revoke the tokens of %s: %w", of.Context, id, err)
		}
		count++
	}
	return count, nil
}
