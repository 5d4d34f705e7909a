// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"slices"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// TestARedescriptionConcerns: the properties of a member concern the exports that depend on them, and what it accepts of
// this cluster concerns all exports.
func TestARedescriptionConcerns(t *testing.T) {
	r := withExports(t, "demo/web", "demo/chosen=region in (eu)")
	policy := func(text string) scope.Policy {
		t.Helper()
		decoded, err := scope.DecodePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		return decoded
	}
	all, ours, theirs := policy(""), policy(`{"*":"*","east":"shop"}`), policy(`{"*":"*","north":"shop"}`)
	for name, test := range map[string]struct {
		change memberstate.Redescription
		want   []string
	}{
		"properties":          {memberstate.Redescription{Properties: true, Before: ours, After: ours}, []string{"demo/chosen"}},
		"policy for others":   {memberstate.Redescription{Before: all, After: theirs}, nil},
		"policy for this one": {memberstate.Redescription{Before: all, After: ours}, []string{"demo/chosen", "demo/web"}},
		"both":                {memberstate.Redescription{Properties: true, Before: ours, After: theirs}, []string{"demo/chosen", "demo/web"}},
	} {
		test.change.Cluster = "west"
		r.DescriptionChanged(test.change)
		if got := queued(r); !slices.Equal(got, test.want) {
			t.Errorf("%s: enqueued are %v, want %v", name, got, test.want)
		}
	}
}
