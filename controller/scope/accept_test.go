// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func name(text string) types.NamespacedName {
	namespace, service, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: service}
}

func TestAccepts(t *testing.T) {
	for _, test := range []struct{ patterns, accepted string }{
		{"", ""},
		{"*", "shop/db shop/web shop-1/db kube/dns"},
		{"shop*", "shop/db shop/web shop-1/db"},
		{"shop-?, kube/d*", "shop-1/db kube/dns"},
		{"*/db", "shop/db shop-1/db"},
	} {
		patterns, err := ParsePatterns(test.patterns)
		if err != nil {
			t.Errorf("%q: %v", test.patterns, err)
		}
		var accepted []string
		for _, service := range []string{"shop/db", "shop/web", "shop-1/db", "kube/dns"} {
			if patterns.Accepts(name(service)) {
				accepted = append(accepted, service)
			}
		}
		if got := strings.Join(accepted, " "); got != test.accepted {
			t.Errorf("%q accepts %q, want %q", test.patterns, got, test.accepted)
		}
	}
	for _, text := range []string{",", "a,", "a//b", "/", "a/", "A", "a b", "[a]", `\*`, strings.Repeat("a", MaxBytes+1)} {
		if patterns, err := ParsePatterns(text); err == nil || patterns.Accepts(name("a/b")) {
			t.Errorf("%.20q was parsed: %v", text, patterns)
		}
	}
}

func FuzzParsePatterns(f *testing.F) {
	for _, seed := range []string{"", "*", "shop, team-?/db", "a/b/c", ",", "[a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		patterns, err := ParsePatterns(text)
		if err != nil {
			return
		}
		again, err := ParsePatterns(patterns.String())
		if err != nil || again.String() != patterns.String() {
			t.Errorf("%q became %q: %v", text, patterns, err)
		}
	})
}

// TestRefusal: if a member has its own patterns, only these count.
func TestRefusal(t *testing.T) {
	parse := func(text string) Patterns {
		patterns, err := ParsePatterns(text)
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
		{"*", "", true, "annotation"},
		{"*", "shop", false, "annotation"},
		{"", "demo/*", false, ""},
	} {
		var own *Patterns
		if test.own != "-" {
			patterns := parse(test.own)
			own = &patterns
		}
		rule := Admission{Accept: parse(test.others)}.Refusal(types.NamespacedName{Namespace: "demo", Name: "web"}, own, test.labelled)
		if (rule == "") != (test.rule == "") || !strings.HasPrefix(rule, test.rule) {
			t.Errorf("%+v: got %q", test, rule)
		}
	}
}

func TestDenied(t *testing.T) {
	denied := Admission{Denied: []string{"kube-*", "b?"}}
	for namespace, want := range map[string]bool{"kube-system": true, "kube": false, "demo": false, "b1": true, "b": false} {
		if got := denied.Denies(namespace); got != want || (Admission{}).Denies(namespace) {
			t.Errorf("%s: got %t", namespace, got)
		}
	}
}
