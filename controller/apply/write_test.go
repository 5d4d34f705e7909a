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
	"k8s.io/utils/clock"
)

// TestRemove: the observed version of an object is deleted, a later one stays. The test covers the answers to stale
// deletions; test/controller uses real servers.
func TestRemove(t *testing.T) {
	service := func(uid types.UID, version string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", UID: uid, ResourceVersion: version}}
	}
	const stale, refused = "stale", "refused"
	for name, test := range map[string]struct {
		live     []runtime.Object
		readable bool
		gone     bool
		err      string
		asked    string
	}{
		"the one that was seen": {[]runtime.Object{service("1", "1")}, true, true, "", "delete"},
		"gone already":          {nil, true, true, "", "delete"},
		"another of its name":   {[]runtime.Object{service("2", "1")}, true, false, "", "delete get"},
		"changed meanwhile":     {[]runtime.Object{service("1", "2")}, true, false, stale, "delete get"},
		"not readable":          {[]runtime.Object{service("1", "2")}, false, false, refused, "delete get"},
		"a webhook refuses it":  {[]runtime.Object{service("1", "1")}, true, false, refused, "delete get"},
	} {
		client := fake.NewClientset(test.live...)
		client.PrependReactor("delete", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
			is := action.(clienttesting.DeleteAction).GetDeleteOptions().Preconditions
			for _, live := range test.live {
				of := live.(*corev1.Service)
				if *is.UID != of.UID || *is.ResourceVersion != of.ResourceVersion || test.err == refused {
					return true, nil, apierrors.NewConflict(corev1.Resource("services"), of.Name, errors.New("another one, or changed"))
				}
			}
			return false, nil, nil
		})
		client.PrependReactor("get", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !test.readable, nil, errors.New("not now")
		})
		p := &pass{Applier: &Applier{Clock: clock.RealClock{}}}
		p.begins(p.observed.Service)
		err := remove(t.Context(), p, client.CoreV1().Services("demo"), service("1", "1"))
		got := ""
		switch {
		case Stale(err):
			got = stale
		case err != nil:
			got = refused
		}
		var asked []string
		for _, action := range client.Actions() {
			asked = append(asked, action.GetVerb())
		}
		left, _ := client.Tracker().List(corev1.SchemeGroupVersion.WithResource("services"), corev1.SchemeGroupVersion.WithKind("Service"), "demo")
		gone := len(left.(*corev1.ServiceList).Items) == 0
		if got != test.err || gone != test.gone || strings.Join(asked, " ") != test.asked {
			t.Errorf("%s: got %v after %v, and it is gone: %v", name, err, asked, gone)
		}
	}
}
