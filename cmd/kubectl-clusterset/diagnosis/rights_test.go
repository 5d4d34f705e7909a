// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// TestReviews has an API server that gives members the right to list Pods, and withholds one right from each account.
func TestReviews(t *testing.T) {
	var refusal error
	client := fake.NewClientset()
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		asked := review.Spec.ResourceAttributes
		member := review.Spec.User == "system:serviceaccount:mcs:clusterset-member"
		needed := !slices.Contains(expand(dangerous, "mcs"), *asked) || !member
		review.Status.Allowed = needed && asked.Verb != "watch" || asked.Resource == "pods" && asked.Verb == "list"
		if !slices.Contains(review.Spec.Groups, "system:serviceaccounts:mcs") {
			t.Errorf("%s is in %q", review.Spec.User, review.Spec.Groups)
		}
		return true, review, refusal
	})
	c := &Cluster{Cluster: &cluster.Cluster{Namespace: "mcs", Kube: client}}
	if err := c.reviewAccounts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := few(c.MemberHas); got != "list pods in namespace mcs" {
		t.Errorf("members have %s", got)
	}
	if got := few(c.MemberLacks); got != "watch endpointslices.discovery.k8s.io, watch leases.coordination.k8s.io "+
		"clusterset-dns-heartbeat in namespace mcs" {
		t.Errorf("members lack %s", got)
	}
	// Its ClusterRole comes first in the file, and its Role last.
	if got := few(c.ControllerLacks); got != "watch serviceexports.multicluster.x-k8s.io, watch serviceimports.multicluster.x-k8s.io, watch services, …" ||
		!slices.Contains(c.ControllerLacks, "watch secrets in namespace mcs") {
		t.Errorf("the controller lacks %s", got)
	}
	refusal = errors.New("not allowed")
	if err := c.reviewAccounts(t.Context()); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
}
