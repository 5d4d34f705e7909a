// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNamespace(t *testing.T) {
	tests := []struct{ prefix, cluster, want string }{
		{"", "east", "clusterset-relay-east"},
		{"edge", "east", "edge-east"},
		{"", "shop.east", "clusterset-relay-shop-east-aa5117d6e55c1fbe"},
		{"", strings.Repeat("a", 46), "clusterset-relay-" + strings.Repeat("a", 46)},
	}
	for _, test := range tests {
		if got := Namespace(test.prefix, test.cluster); got != test.want {
			t.Errorf("%q, %q: got %s, want %s", test.prefix, test.cluster, got, test.want)
		}
	}
	seen := map[string]string{}
	for _, cluster := range []string{
		"a.b", "a-b", "b.a", strings.Repeat("a", 47), strings.Repeat("a", 63),
		strings.Repeat("a", 31) + "." + strings.Repeat("b", 31),
	} {
		name := Namespace("", cluster)
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 || seen[name] != "" {
			t.Errorf("%s: %s is invalid %v, or that of %q", cluster, name, problems, seen[name])
		}
		seen[name] = cluster
	}
}

func TestRecordName(t *testing.T) {
	seen := map[string]types.NamespacedName{}
	for _, slice := range []types.NamespacedName{
		{Namespace: "a", Name: "b-c"},
		{Namespace: "a-b", Name: "c"},
		{Namespace: "a", Name: "b.c"},
		{Namespace: "a", Name: strings.Repeat("x.", 126) + "y"},
		{Namespace: "a", Name: strings.Repeat("x-", 126) + "y"},
	} {
		name := RecordName(slice)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || seen[name].Name != "" {
			t.Errorf("%s: %s is invalid %v, or that of %s", slice, name, problems, seen[name])
		}
		seen[name] = slice
	}
}
