// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
)

// TestAnswered judges what DNS answers for a headless service.
func TestAnswered(t *testing.T) {
	for name, test := range map[string]struct {
		near, far      string
		onlyNear, part bool
		got            string
		want           string // right, part or wrong
	}{
		"all":                            {"10.0.0.1", "10.1.0.1", false, false, "10.1.0.1 10.0.0.1", "right"},
		"too little":                     {"10.0.0.1", "10.1.0.1", false, false, "10.0.0.1", "wrong"},
		"near ones":                      {"10.0.0.1", "10.1.0.1", true, false, "10.0.0.1", "right"},
		"all where near ones are due":    {"10.0.0.1", "10.1.0.1", true, false, "10.0.0.1 10.1.0.1", "wrong"},
		"all, as none is near":           {"", "10.1.0.1", true, false, "10.1.0.1", "right"},
		"all, as none of the family is":  {"fd00::1", "10.1.0.1", true, false, "10.1.0.1", "right"},
		"some, which may be":             {"10.0.0.1", "10.1.0.1", false, true, "10.1.0.1", "part"},
		"all, where some may be":         {"10.0.0.1", "10.1.0.1", false, true, "10.0.0.1 10.1.0.1", "right"},
		"none, where some may be":        {"10.0.0.1", "10.1.0.1", false, true, "", "wrong"},
		"another one, where some may be": {"10.0.0.1", "10.1.0.1", false, true, "10.0.0.1 10.2.0.1", "wrong"},
		"some of the near, which may be": {"10.0.0.1 10.0.0.2", "10.1.0.1", true, true, "10.0.0.2", "part"},
		"some of the far, where near is": {"10.0.0.1 10.0.0.2", "10.1.0.1", true, true, "10.1.0.1", "wrong"},
		"nothing where nothing is":       {"", "", true, true, "", "right"},
	} {
		near := strings.Fields(test.near)
		e := &Explanation{
			near: near, expected: slices.Concat(near, strings.Fields(test.far)), onlyNear: test.onlyNear,
			part: test.part,
		}
		e.Answered("a server", dns.Answer{Type: "A", Rcode: "NOERROR", Records: strings.Fields(test.got)})
		got := "right"
		switch answer := e.Answers[0]; {
		case answer.Wrong:
			got = "wrong"
		case answer.Part:
			got = "part"
		}
		if got != test.want || (got == "wrong") != (len(e.Problems) > 0) {
			t.Errorf("%s: it is %s, want %s", name, got, test.want)
		}
	}
}

func TestHintText(t *testing.T) {
	const elsewhere = "elsewhere.clusterset-dns.github.io"
	zones := func(names ...string) (all []discoveryv1.ForZone) {
		for _, name := range names {
			all = append(all, discoveryv1.ForZone{Name: name})
		}
		return all
	}
	for want, hints := range map[string]*discoveryv1.EndpointHints{
		"":                     nil,
		"zone a,b":             {ForZones: zones("a", "b")},
		"no zone here":         {ForZones: zones(elsewhere), ForNodes: []discoveryv1.ForNode{{Name: elsewhere}}},
		"node x, zone a":       {ForZones: zones("a"), ForNodes: []discoveryv1.ForNode{{Name: "x"}}},
		"node x, no zone here": {ForZones: zones(elsewhere), ForNodes: []discoveryv1.ForNode{{Name: "x"}}},
	} {
		if got := hintText(hints); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
