// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2/textlogger"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

func TestNamed(t *testing.T) {
	if got := named([]string{"a", "b"}); got != "a, b" {
		t.Error(got)
	}
	if got := named(strings.Split(strings.Repeat("a", 25), "")); !strings.HasSuffix(got, "a, a and 5 more") {
		t.Error(got)
	}
}

// TestPolicyText: a policy that does not fit into the heartbeat is not published, and logged once.
func TestPolicyText(t *testing.T) {
	g := &Gatherer{Members: member.New(member.Config{}), Admission: scope.Admission{Accept: scope.AllServices}}
	g.Local = local.New(fake.NewClientset(), &informer.FreshnessGate{}, "clusterset-dns", "")
	var log bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	expect := func(when, text string, lines int) {
		t.Helper()
		for range 2 {
			if got := g.PolicyText(logger); got != text || strings.Count(log.String(), "\n") != lines {
				t.Errorf("%s: published %.100q, logged %s", when, got, &log)
			}
		}
	}
	expect("everything", "", 0)
	g.Accept = scope.Patterns{}
	expect("nothing", `{"*":""}`, 0)
	var namespaces []string
	for i := range 500 {
		namespaces = append(namespaces, fmt.Sprintf("team-%d", i))
	}
	g.Accept = g.Accept.With(namespaces)
	expect("500 namespaces", "", 1)
	if !strings.Contains(log.String(), fmt.Sprintf("bytes=%d limit=%d", len(g.Policy().Encode()), scope.MaxBytes)) {
		t.Errorf("logged %s", &log)
	}
	g.Accept = scope.Patterns{}
	expect("nothing again", `{"*":""}`, 1)
}
