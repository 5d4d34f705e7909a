// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// TestNothingWaitsForWhatIsOptional: an API server says "forbidden" of a group
// that it does not have, too, to an account without rights on it.
func TestNothingWaitsForWhatIsOptional(t *testing.T) {
	imports := schema.GroupResource{Group: GroupGKE, Resource: "serviceimports"}
	for _, test := range []struct {
		name  string
		err   error
		waits bool
	}{
		{"missing", apierrors.NewNotFound(imports, ""), false},
		{"forbidden", apierrors.NewForbidden(imports, "", errors.New("no right")), false},
		{"away", errors.New("connection refused"), true},
		{"throttled", apierrors.NewTooManyRequests("later", 1), true},
	} {
		for _, ask := range []string{"list", "watch"} {
			t.Run(test.name+"/"+ask, func(t *testing.T) {
				b := newBench(t, Options{})
				b.missing = map[scope]bool{{resource: GKEServiceImports}: false}
				from := b.optional(scope{resource: GKEServiceImports}, lister{
					list: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, test.err },
					watch: func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
						return nil,
							test.err
					},
				})
				var err error
				if ask == "list" {
					_, err = from.list(t.Context(), metav1.ListOptions{})
				} else {
					_, err = from.watch(t.Context(), metav1.ListOptions{})
				}
				if !errors.Is(err, test.err) {
					t.Errorf("the error became %v", err)
				}
				b.drain()
				synced := false
				select {
				case <-b.Synced():
					synced = true
				default:
				}
				if synced == test.waits {
					t.Errorf("synced is %v", synced)
				}
			})
		}
	}
}
