// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// between returns the peering by which west reads east, whose clusters have objects.
func between(source, reader []runtime.Object) *peering {
	return &peering{
		source:   &cluster.Cluster{Context: "east", Namespace: system, Kube: fake.NewClientset(source...)},
		is:       cluster.Identity{ID: "east"},
		reader:   &cluster.Cluster{Context: "west", Namespace: system, Kube: fake.NewClientset(reader...)},
		readerID: "west",
	}
}

// TestAllow: an account gets the one right, by its name, and both objects go with their owner.
func TestAllow(t *testing.T) {
	c, secret := between(nil, nil).source, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "member-west", UID: "1"}}
	err := Options{}.allow(t.Context(), c, grant{
		name: "renew", account: ControllerName, owner: owner("Secret", secret), verb: "update", resource: "secrets",
	})
	if err != nil {
		t.Fatal(err)
	}
	role, err := c.Kube.RbacV1().Roles(system).Get(t.Context(), "renew", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := c.Kube.RbacV1().RoleBindings(system).Get(t.Context(), "renew", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"member-west"}, Verbs: []string{"update"},
	}
	if len(role.Rules) != 1 || !reflect.DeepEqual(role.Rules[0], want) {
		t.Errorf("the rules are %v", role.Rules)
	}
	if binding.RoleRef.Name != "renew" || len(binding.Subjects) != 1 || binding.Subjects[0].Name != ControllerName {
		t.Errorf("the binding is %v of %v", binding.RoleRef, binding.Subjects)
	}
	for _, object := range []metav1.Object{role, binding} {
		if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "1" {
			t.Errorf("%s belongs to %v", object.GetName(), owners)
		}
	}
}

// TestRevoke deletes no account but those of readers.
func TestRevoke(t *testing.T) {
	for reader, want := range map[string]int{"west": 1, "": 2, "lost": 0} {
		var objects []runtime.Object
		for name, id := range map[string]string{
			"clusterset-member-west": "west", "clusterset-member-north": "north", "clusterset-controller": "west",
			"clusterset-member": "",
		} {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: system}}
			if id != "" {
				account.Labels = map[string]string{cluster.ReaderLabel: id}
			}
			objects = append(objects, account)
		}
		c := between(objects, nil).source
		count, err := revoke(t.Context(), c, reader, nil)
		left, listErr := c.Kube.CoreV1().ServiceAccounts(system).List(t.Context(), metav1.ListOptions{})
		if err != nil || listErr != nil || count != want || len(left.Items) != 4-want {
			t.Errorf("of %q: %d deleted, %d left, %v, %v", reader, count, len(left.Items), err, listErr)
		}
	}
}
