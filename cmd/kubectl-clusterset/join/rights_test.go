// SPDX-License-Identifier: Apache-2.0

package join

import (
	"io"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// TestRightsOfANamedSet writes nothing: the manifest has the names of the default set, whose members would lose their
// rights.
func TestRightsOfANamedSet(t *testing.T) {
	east := joined("east")
	written := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	east.Dynamic = written
	east.Kube.(*fake.Clientset).PrependReactor("create", "subjectaccessreviews",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &authorizationv1.SubjectAccessReview{}, nil // denied
		})
	is, err := east.Identify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	is.Set = "blue"
	o := Options{Teller: progress.Teller{Out: io.Discard, Results: io.Discard}}
	err = o.ensureRights(t.Context(), east, is)
	const want = "context admin@east: service account clusterset-dns/clusterset-member lacks the permissions of a member"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Helm release of cluster set blue") {
		t.Errorf("got %v", err)
	}
	if actions := written.Actions(); len(actions) > 0 {
		t.Errorf("it writes %v", actions)
	}
}
