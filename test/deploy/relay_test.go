// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// TestAClusterWritesItsMailboxOnly: the objects of a relay are those that the controller expects, and nothing else than
// the account of a cluster writes to its mailbox.
func TestAClusterWritesItsMailboxOnly(t *testing.T) {
	ids := []string{"east", "shop.west", strings.Repeat("a", 63), strings.Repeat("b", 28) + "-" + strings.Repeat("c", 30)}
	for _, prefix := range []string{mailbox.DefaultPrefix, "edge"} {
		output, err := try(t.Context(), t, "", helm(t), "template", "x", chart, "--show-only", "templates/relay.yaml",
			"--set", "relay.prefix="+prefix, "--set", "relay.mailboxes={"+strings.Join(ids, ",")+"}")
		if err != nil {
			t.Fatal(err)
		}
		var namespaces []string
		for document := range strings.SplitSeq(output, "\n---") {
			binding, namespace := rbacv1.RoleBinding{}, corev1.Namespace{}
			if strings.Contains(document, "\nkind: Namespace\n") {
				if err := yaml.Unmarshal([]byte(document), &namespace); err != nil {
					t.Fatal(err)
				}
				namespaces = append(namespaces, namespace.Name)
			}
			if !strings.Contains(document, "\nkind: RoleBinding\n") {
				if strings.Contains(document, "\nkind: ClusterRoleBinding\n") {
					t.Errorf("a right in all namespaces:\n%s", document)
				}
				continue
			}
			if err := yaml.Unmarshal([]byte(document), &binding); err != nil {
				t.Fatal(err)
			}
			of := slices.IndexFunc(ids, func(id string) bool { return mailbox.Namespace(prefix, id) == binding.Namespace })
			if of < 0 {
				t.Fatalf("a RoleBinding in %s, which is no mailbox", binding.Namespace)
			}
			want := rbacv1.Subject{Kind: "ServiceAccount", Name: ids[of], Namespace: prefix}
			if binding.RoleRef.Name == prefix+"-reader" {
				want = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + prefix}
			}
			if !slices.Equal(binding.Subjects, []rbacv1.Subject{want}) {
				t.Errorf("%s in %s is bound to %v", binding.RoleRef.Name, binding.Namespace, binding.Subjects)
			}
		}
		if len(namespaces) != len(ids)+1 {
			t.Errorf("got the namespaces %v", namespaces)
		}
		for _, id := range ids {
			if !slices.Contains(namespaces, mailbox.Namespace(prefix, id)) {
				t.Errorf("no mailbox of %s in %v", id, namespaces)
			}
		}
	}
}
