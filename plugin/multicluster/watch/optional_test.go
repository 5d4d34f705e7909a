// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, Options{})
			gke := scope{resource: GKEServiceImports}
			b.missing = map[scope]bool{gke: false}
			b.asked(gke, true, test.err)
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
