// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2/textlogger"

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

// TestPolicyPublisher: a policy that does not fit into the heartbeat is not published, and logged once.
func TestPolicyPublisher(t *testing.T) {
	policy := accept.Policy{Others: accept.All}
	publisher := PolicyPublisher{Policy: func() accept.Policy { return policy }}
	var log bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	expect := func(when, text string, lines int) {
		t.Helper()
		for range 2 {
			if got := publisher.Text(logger); got != text || strings.Count(log.String(), "\n") != lines {
				t.Errorf("%s: published %.100q, logged %s", when, got, &log)
			}
		}
	}
	expect("everything", "", 0)
	policy.Others = accept.Patterns{}
	expect("nothing", `{"*":""}`, 0)
	var namespaces []string
	for i := range 500 {
		namespaces = append(namespaces, fmt.Sprintf("team-%d", i))
	}
	policy.Others = policy.Others.With(namespaces)
	expect("500 namespaces", "", 1)
	if !strings.Contains(log.String(), fmt.Sprintf("bytes=%d limit=%d", len(policy.Encode()), accept.MaxBytes)) {
		t.Errorf("logged %s", &log)
	}
	policy.Others = accept.Patterns{}
	expect("nothing again", `{"*":""}`, 2)
}
