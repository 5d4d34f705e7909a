// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// TestReviews has an API server that gives all members the rights to list Pods and to run programs in them, and one reader the right
// to write slices.
func TestReviews(t *testing.T) {
	var refusal error
	client, reviewed := fake.NewClientset(), map[string]bool{}
	add := func(name string) {
		must(t, client.Tracker().Add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "mcs", Name: name}}))
	}
	for _, name := range []string{"clusterset-member", "clusterset-member-west", "clusterset-controller"} {
		add(name)
	}
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = asked.Resource == "pods" && (asked.Verb == "list" || asked.Subresource == "exec") ||
			asked.Resource == "endpointslices" && asked.Group == "discovery.k8s.io" && asked.Verb == "patch" &&
				review.Spec.User == "system:serviceaccount:mcs:clusterset-member-west"
		if !slices.Contains(review.Spec.Groups, "system:serviceaccounts:mcs") {
			t.Errorf("%s is in %q", review.Spec.User, review.Spec.Groups)
		}
		reviewed[review.Spec.User] = true
		return true, review, refusal
	})
	c := &Cluster{Cluster: &cluster.Cluster{Namespace: "mcs", Kube: client}}
	got, err := c.reviewMembers(t.Context())
	if want := []string{
		"list pods in namespace mcs", "create pods/exec in namespace mcs",
		"patch endpointslices.discovery.k8s.io in namespace mcs",
	}; err != nil || !slices.Equal(got, want) || len(reviewed) != 2 {
		t.Errorf("members have %q, %v; reviewed %v", got, err, reviewed)
	}
	refusal = errors.New("not allowed")
	if _, err := c.reviewMembers(t.Context()); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	refusal = nil
	for i := range maxReviewed {
		add(fmt.Sprint("clusterset-member-", i))
	}
	for namespace, want := range map[string]string{"mcs": "only 10 of 12 ServiceAccounts", "other": "only 0 of 0 ServiceAccounts"} {
		c.Namespace = namespace
		if got, err := c.reviewMembers(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) || len(got) > 0 != (namespace == "mcs") {
			t.Errorf("got %q, %v, want %s", got, err, want)
		}
	}
}
