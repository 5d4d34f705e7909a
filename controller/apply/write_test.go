// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRemove: what was seen is deleted, and what came after it stays. The answers to stale deletions are what is under test;
// real servers are met in test/controller.
func TestRemove(t *testing.T) {
	service := func(uid types.UID, version string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", UID: uid, ResourceVersion: version}}
	}
	for name, test := range map[string]struct {
		live        []runtime.Object
		gone, fails bool
		asked       string
	}{
		"the one that was seen": {[]runtime.Object{service("1", "1")}, true, false, "delete"},
		"gone already":          {nil, true, false, "delete"},
		"another of its name":   {[]runtime.Object{service("2", "1")}, false, false, "delete get"},
		"changed meanwhile":     {[]runtime.Object{service("1", "2")}, false, true, "delete get"},
	} {
		client := fake.NewClientset(test.live...)
		client.PrependReactor("delete", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
			is := action.(clienttesting.DeleteAction).GetDeleteOptions().Preconditions
			for _, live := range test.live {
				if of := live.(*corev1.Service); *is.UID != of.UID || *is.ResourceVersion != of.ResourceVersion {
					return true, nil, apierrors.NewConflict(corev1.Resource("services"), of.Name, errors.New("another one, or changed"))
				}
			}
			return false, nil, nil
		})
		err := remove(t.Context(), client.CoreV1().Services("demo"), service("1", "1"))
		var asked []string
		for _, action := range client.Actions() {
			asked = append(asked, action.GetVerb())
		}
		_, missing := client.CoreV1().Services("demo").Get(t.Context(), "web", metav1.GetOptions{})
		if (err != nil) != test.fails || Stale(err) != test.fails || (missing != nil) != test.gone || strings.Join(asked, " ") != test.asked {
			t.Errorf("%s: got %v after %v, and then %v", name, err, asked, missing)
		}
	}
}
