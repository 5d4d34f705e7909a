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
		{" ", ""},
		{"*", "shop/db shop/web shop-1/db kube/dns"},
		{"shop", "shop/db shop/web"},
		{"shop*", "shop/db shop/web shop-1/db"},
		{"shop-?, kube/d*", "shop-1/db kube/dns"},
		{"*/db", "shop/db shop-1/db"},
		{"shop/web,shop/web", "shop/web"},
		{"*/*", "shop/db shop/web shop-1/db kube/dns"},
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
	patterns, _ := ParsePatterns("shop")
	if with := patterns.With([]string{"team-a", "shop"}); with.String() != "shop,team-a" || !with.Accepts(name("team-a/x")) ||
		patterns.Accepts(name("team-a/x")) {
		t.Errorf("with namespaces: %v, %v", with, patterns)
	}
	for _, text := range []string{",", "a,", "a//b", "/", "a/", "A", "a b", "[a]", `\*`, strings.Repeat("a", MaxBytes+1)} {
		if patterns, err := ParsePatterns(text); err == nil || patterns.Accepts(name("a/b")) {
			t.Errorf("%.20q was parsed: %v", text, patterns)
		}
	}
}

func TestPolicy(t *testing.T) {
	shop, _ := ParsePatterns("shop, team-?/db")
	for text, policy := range map[string]Policy{
		"":                                  {Others: AllServices},
		`{"*":""}`:                          {},
		`{"*":"shop,team-?/db"}`:            {Others: shop},
		`{"*":"","west":"*"}`:               {Members: map[string]Patterns{"west": AllServices}},
		`{"*":"*","west":""}`:               {Others: AllServices, Members: map[string]Patterns{"west": {}, "north": AllServices}},
		`{"*":"*","west":"shop,team-?/db"}`: {Others: AllServices, Members: map[string]Patterns{"west": shop}},
	} {
		if got := policy.Encode(); got != text {
			t.Errorf("%v became %s, want %s", policy, got, text)
		}
		decoded, err := DecodePolicy(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, member := range []string{"west", "north", "east"} {
			if !decoded.Of(member).Equal(policy.Of(member)) {
				t.Errorf("%s: %s may contribute %v, want %v", text, member, decoded.Of(member), policy.Of(member))
			}
		}
	}
	for _, text := range []string{"x", "[]", `{"*":1}`, `{"a":"B"}`, strings.Repeat(" ", MaxBytes+1)} {
		if policy, err := DecodePolicy(text); err == nil || policy.Of("west").Accepts(name("a/b")) {
			t.Errorf("%.20q was decoded: %v", text, policy)
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
		if err != nil || !again.Equal(patterns) {
			t.Errorf("%q became %q: %v", text, patterns, err)
		}
		if patterns.All() && !patterns.Accepts(name("any/thing")) {
			t.Errorf("%q refuses something", text)
		}
	})
}

func FuzzDecodePolicy(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"*":"shop,a/?","west":""}`, `{"west":"A"}`, "null"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		policy, err := DecodePolicy(text)
		if err != nil {
			return
		}
		again, err := DecodePolicy(policy.Encode())
		if len(policy.Encode()) > MaxBytes {
			return
		}
		if err != nil {
			t.Fatalf("%q became %q: %v", text, policy.Encode(), err)
		}
		for member := range policy.Members {
			if both := again.Of(member).All() && policy.Of(member).All(); !both && !again.Of(member).Equal(policy.Of(member)) {
				t.Errorf("%q: %q may contribute %v, then %v", text, member, policy.Of(member), again.Of(member))
			}
		}
	})
}

// TestAdmit: patterns of a member's own are all that counts for it.
func TestAdmit(t *testing.T) {
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
		{"shop", "-", false, "--accept"},
		{"demo/web", "-", false, ""},
		{"*", "", true, "annotation"},
		{"*", "shop", false, "annotation"},
		{"", "demo/*", false, ""},
	} {
		var own *Patterns
		if test.own != "-" {
			patterns := parse(test.own)
			own = &patterns
		}
		rule := Admission{Accept: parse(test.others)}.Admit(types.NamespacedName{Namespace: "demo", Name: "web"}, own, test.labelled)
		if (rule == "") != (test.rule == "") || !strings.HasPrefix(rule, test.rule) {
			t.Errorf("%+v: got %q", test, rule)
		}
	}
}

func TestDenied(t *testing.T) {
	for _, test := range []struct {
		patterns  []string
		namespace string
		want      bool
	}{
		{[]string{"kube-*"}, "kube-system", true},
		{[]string{"kube-*"}, "kube", false},
		{[]string{"kube-*"}, "demo", false},
		{[]string{"a", "b?"}, "b1", true},
		{[]string{"a", "b?"}, "b", false},
		{[]string{}, "kube-system", false},
	} {
		if got := (Admission{Denied: test.patterns}).Denies(test.namespace); got != test.want {
			t.Errorf("%v %s: got %t", test.patterns, test.namespace, got)
		}
	}
}
