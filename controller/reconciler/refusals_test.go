// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestRefusals: each refusal is reported once, and again after it ended or if its rule changed.
func TestRefusals(t *testing.T) {
	var r refusals
	service := types.NamespacedName{Namespace: "demo", Name: "web"}
	for i, step := range []struct {
		rules map[string]string
		want  string
	}{
		{nil, ""},
		{map[string]string{"west": "a", "north": "a"}, "north west"},
		{map[string]string{"west": "a", "north": "b"}, "north"},
		{map[string]string{"west": "a"}, ""},
		{nil, ""},
		{map[string]string{"west": "a"}, "west"},
		{map[string]string{}, ""},
	} {
		if got := strings.Join(r.set(service, step.rules), " "); got != step.want {
			t.Errorf("step %d: reported %q, want %q", i, got, step.want)
		}
	}
	for left := range r.of.Range {
		t.Errorf("%v is left", left)
	}
}
