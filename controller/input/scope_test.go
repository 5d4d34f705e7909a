// SPDX-License-Identifier: Apache-2.0

package input

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
)

func TestRefuses(t *testing.T) {
	parse := func(text string) accept.Patterns {
		patterns, err := accept.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return patterns
	}
	for _, test := range []struct {
		others, own string // own is "-" for none
		labelled    bool
		rule        string
	}{
		{"*", "-", false, ""},
		{"", "-", false, "--accept"},
		{"", "-", true, ""},
		{"shop", "-", false, "--accept"},
		{"demo/web", "-", false, ""},
		{"*", "", true, "annotation"},
		{"*", "shop", false, "annotation"},
		{"", "demo/*", false, ""},
	} {
		var own *accept.Patterns
		if test.own != "-" {
			patterns := parse(test.own)
			own = &patterns
		}
		rule := Refuses(parse(test.others), own, types.NamespacedName{Namespace: "demo", Name: "web"}, test.labelled)
		if (rule == "") != (test.rule == "") || !strings.HasPrefix(rule, test.rule) {
			t.Errorf("%+v: got %q", test, rule)
		}
	}
}

func TestNamed(t *testing.T) {
	if got := named([]string{"a", "b"}); got != "a, b" {
		t.Error(got)
	}
	if got := named(strings.Split(strings.Repeat("a", 25), "")); !strings.HasSuffix(got, "a, a and 5 more") {
		t.Error(got)
	}
}
