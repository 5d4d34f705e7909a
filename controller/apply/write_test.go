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

// TestRefusedUnchanged: an answer as to a stale object is an error, which is reported and retried with backoff, if the object did
// not change. A webhook may refuse with 409, and a CustomResourceDefinition may lack the subresource status.
func TestRefusedUnchanged(t *testing.T) {
	service := corev1.Resource("services")
	conflict, missing := apierrors.NewConflict(service, "web", errors.New("refused")), apierrors.NewNotFound(service, "web")
	version := func(version string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", UID: "1", ResourceVersion: version}}
	}
	for name, test := range map[string]struct {
		seen, live *corev1.Service
		answer     error
		stale      bool
	}{
		"a webhook refuses an update":   {version("1"), version("1"), conflict, false},
		"a webhook refuses a creation":  {nil, nil, conflict, false},
		"there is no such subresource":  {version("1"), version("1"), missing, false},
		"it changed":                    {version("1"), version("2"), conflict, true},
		"it was deleted":                {version("1"), nil, missing, true},
		"it was created":                {nil, version("1"), apierrors.NewAlreadyExists(service, "web"), true},
		"it was created and is refused": {nil, version("1"), conflict, true},
	} {
		client := fake.NewClientset()
		client.PrependReactor("*", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
			switch {
			case action.GetVerb() != "get":
				return true, nil, test.answer
			case test.live == nil:
				return true, nil, missing
			}
			return true, test.live, nil
		})
		p, services := &pass{Applier: &Applier{Clock: clock.RealClock{}}}, client.CoreV1().Services("demo")
		p.begins(p.observed.Service)
		desired := version("1")
		desired.Labels = map[string]string{"a": "b"}
		live, err := write(t.Context(), p, services, services.Update, test.seen, desired, equalService)
		if want := map[bool]error{true: errStale, false: test.answer}[test.stale]; !errors.Is(err, want) || test.stale && live != test.live {
			t.Errorf("%s: got %v, %v", name, live, err)
		}
	}
}
