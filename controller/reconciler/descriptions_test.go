// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"slices"
	"testing"
)

// TestPropertiesOfAMember concern the exports that depend on them.
func TestPropertiesOfAMember(t *testing.T) {
	r := withExports(t, "demo/web", "demo/chosen=region in (eu)")
	r.PropertiesChanged("west")
	if got := queued(r); !slices.Equal(got, []string{"demo/chosen"}) {
		t.Errorf("enqueued are %v", got)
	}
}
