// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

// TestStale: an object is written and deleted only in the version that was seen. The same answers of the API server are errors,
// which are reported and retried with backoff, if the object did not change: a webhook may refuse with 409, and a
// CustomResourceDefinition may lack the subresource status. test/controller uses real servers.
func TestStale(t *testing.T) {
	service := corev1.Resource("services")
	conflict, missing := apierrors.NewConflict(service, "web", errors.New("refused")), apierrors.NewNotFound(service, "web")
	exists, unreadable := apierrors.NewAlreadyExists(service, "web"), errors.New("not now")
	version := func(uid types.UID, version string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", UID: uid, ResourceVersion: version}}
	}
	for name, test := range map[string]struct {
		verb                 string
		seen, live           *corev1.Service
		answer, unread, want error
	}{
		"it is deleted":                 {"delete", version("1", "1"), nil, nil, nil, nil},
		"it was deleted already":        {"delete", version("1", "1"), nil, missing, nil, nil},
		"another of its name stays":     {"delete", version("1", "1"), version("2", "1"), conflict, nil, errStale},
		"it changed, and stays":         {"delete", version("1", "1"), version("1", "2"), conflict, nil, errStale},
		"it cannot be read":             {"delete", version("1", "1"), nil, conflict, unreadable, unreadable},
		"a webhook refuses a deletion":  {"delete", version("1", "1"), version("1", "1"), conflict, nil, conflict},
		"a webhook refuses an update":   {"update", version("1", "1"), version("1", "1"), conflict, nil, conflict},
		"a webhook refuses a creation":  {"create", nil, nil, conflict, nil, conflict},
		"there is no such subresource":  {"update", version("1", "1"), version("1", "1"), missing, nil, missing},
		"it changed":                    {"update", version("1", "1"), version("1", "2"), conflict, nil, errStale},
		"it was replaced":               {"update", version("1", "1"), version("2", "1"), conflict, nil, errStale},
		"it was deleted":                {"update", version("1", "1"), nil, missing, nil, errStale},
		"it was created":                {"create", nil, version("1", "1"), exists, nil, errStale},
		"it was created and is refused": {"create", nil, version("1", "1"), conflict, nil, errStale},
	} {
		client, asked := fake.NewClientset(), ""
		client.PrependReactor("*", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
			asked += action.GetVerb() + " "
			if deletion, ok := action.(clienttesting.DeleteAction); ok {
				if is := deletion.GetDeleteOptions().Preconditions; *is.UID != test.seen.UID || *is.ResourceVersion != test.seen.ResourceVersion {
					t.Errorf("%s: another version is deleted: %v", name, is)
				}
			}
			switch {
			case action.GetVerb() != "get":
				return true, nil, test.answer
			case test.live == nil && test.unread == nil:
				return true, nil, missing
			}
			return true, test.live, test.unread
		})
		p, services := &pass{Applier: &Applier{Clock: clock.RealClock{}}}, client.CoreV1().Services("demo")
		var live *corev1.Service
		var err error
		if test.verb == "delete" {
			live, err = test.live, remove(t.Context(), services, test.seen)
		} else {
			desired := version("1", "1")
			desired.Labels = map[string]string{"a": "b"}
			live, err = write(t.Context(), p, services, services.Update, test.seen, desired, equalService)
		}
		want := test.verb + " "
		if test.answer != nil && (test.verb != "delete" || !errors.Is(test.answer, missing)) {
			want += "get "
		}
		if !errors.Is(err, test.want) || Stale(err) && live != test.live || asked != want {
			t.Errorf("%s: got %v, %v after %s", name, live, err, asked)
		}
	}
}
