// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// TestARevisionThatChangesMeanwhileIsLookedAtAnew: it changes between its being
// read and its being deleted, once.
func TestARevisionThatChangesMeanwhileIsLookedAtAnew(t *testing.T) {
	client := install(". {\n}\n")
	deployment, err := client.AppsV1().Deployments(Namespace).Get(t.Context(), Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revisions := client.AppsV1().ReplicaSets(Namespace)
	if _, err := revisions.Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "old", Labels: deployment.Spec.Selector.MatchLabels,
			Annotations:     map[string]string{AnnotationImage: "stock"},
			OwnerReferences: []metav1.OwnerReference{{Name: Name, Controller: ptr.To(true)}},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0)},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	asked := 0
	client.PrependReactor("delete", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		return asked == 1, nil, apierrors.NewConflict(schema.GroupResource{Resource: "replicasets"}, "old", nil)
	})
	c := &change{Options: Options{Cluster: &cluster.Cluster{Kube: client}}, deployment: deployment}
	if err := c.forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := revisions.Get(t.Context(), "old", metav1.GetOptions{}); asked != 2 || !apierrors.IsNotFound(err) {
		t.Errorf("%d deletions: %v", asked, err)
	}
}
