// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var resource = schema.GroupResource{Resource: "services"}

// server is one name of an API server, and what it was asked. Its answers to stale deletions are what is under test; real
// ones are met in test/controller.
type server struct {
	client[*corev1.Service]
	live  *corev1.Service
	asked []string
}

func webService(uid types.UID, version string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid, ResourceVersion: version}}
}

func (s *server) Get(context.Context, string, metav1.GetOptions) (*corev1.Service, error) {
	s.asked = append(s.asked, "get")
	if s.live == nil {
		return nil, apierrors.NewNotFound(resource, "web")
	}
	return s.live.DeepCopy(), nil
}

func (s *server) Delete(_ context.Context, _ string, options metav1.DeleteOptions) error {
	s.asked = append(s.asked, fmt.Sprintf("delete %s of version %s", *options.Preconditions.UID,
		*options.Preconditions.ResourceVersion))
	switch {
	case s.live == nil:
		return apierrors.NewNotFound(resource, "web")
	case s.live.UID != *options.Preconditions.UID, s.live.ResourceVersion != *options.Preconditions.ResourceVersion:
		return apierrors.NewConflict(resource, "web", errors.New("another one, or changed"))
	}
	s.live = nil
	return nil
}

// TestRemove: what was seen is deleted, and what came after it stays.
func TestRemove(t *testing.T) {
	const remove1 = "delete 1 of version 1"
	for name, test := range map[string]struct {
		live        *corev1.Service
		gone, fails bool
		asked       []string
	}{
		"the one that was seen": {webService("1", "1"), true, false, []string{remove1}},
		"gone already":          {nil, true, false, []string{remove1}},
		"another of its name":   {webService("2", "1"), false, false, []string{remove1, "get"}},
		"changed meanwhile":     {webService("1", "2"), false, true, []string{remove1, "get"}},
	} {
		s := &server{live: test.live}
		if err := remove(t.Context(), s, webService("1", "1")); (err != nil) != test.fails ||
			(s.live == nil) != test.gone {
			t.Errorf("%s: got %v, there is %v", name, err, s.live)
		}
		if !slices.Equal(s.asked, test.asked) {
			t.Errorf("%s: asked %v, want %v", name, s.asked, test.asked)
		}
	}
}
