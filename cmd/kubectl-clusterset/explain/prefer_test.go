// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestAnswered judges what DNS answers for a headless service of east, the
// local cluster, and west.
func TestAnswered(t *testing.T) {
	const near, some = "prefer cluster", "max_answers 1"
	for name, test := range map[string]struct {
		east, west string
		options    string // of the plugin
		got        string
		want       string // right, part or wrong
	}{
		"all":                            {"10.0.0.1", "10.1.0.1", "", "10.1.0.1 10.0.0.1", "right"},
		"too little":                     {"10.0.0.1", "10.1.0.1", "", "10.0.0.1", "wrong"},
		"near ones":                      {"10.0.0.1", "10.1.0.1", near, "10.0.0.1", "right"},
		"all where near ones are due":    {"10.0.0.1", "10.1.0.1", near, "10.0.0.1 10.1.0.1", "wrong"},
		"all, as none is near":           {"", "10.1.0.1", near, "10.1.0.1", "right"},
		"all, as none of the family is":  {"fd00::1", "10.1.0.1", near, "10.1.0.1", "right"},
		"some, which may be":             {"10.0.0.1", "10.1.0.1", some, "10.1.0.1", "part"},
		"all, where some may be":         {"10.0.0.1", "10.1.0.1", some, "10.0.0.1 10.1.0.1", "right"},
		"none, where some may be":        {"10.0.0.1", "10.1.0.1", some, "", "wrong"},
		"another one, where some may be": {"10.0.0.1", "10.1.0.1", some, "10.0.0.1 10.2.0.1", "wrong"},
		"some of the near, which may be": {"10.0.0.1 10.0.0.2", "10.1.0.1", near + "\n" + some, "10.0.0.2", "part"},
		"some of the far, where near is": {"10.0.0.1 10.0.0.2", "10.1.0.1", near + "\n" + some, "10.1.0.1", "wrong"},
		"nothing where nothing is":       {"", "", near, "", "right"},
		"those of some client's zone":    {"10.0.0.1", "10.1.0.1", "prefer zone", "10.1.0.1", "part"},
	} {
		f := newFacts()
		f.Corefile = ". {\nmulticluster clusterset.local {\ncluster east\n" + test.options + "\n}\n}"
		for cluster, addresses := range map[string]string{"east": test.east, "west": test.west} {
			for _, address := range strings.Fields(addresses) {
				slice := f.Slices[0].DeepCopy()
				if slice.Labels[export.LabelSourceCluster] = cluster; strings.Contains(address, ":") {
					slice.AddressType = discoveryv1.AddressTypeIPv6
				}
				slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}}}
				f.Slices = append(f.Slices, slice)
			}
		}
		e := Of(f, service, DefaultZone)
		before := len(e.Problems)
		e.Answered("a server", dns.Answer{Type: "A", Rcode: "NOERROR", Records: strings.Fields(test.got)})
		got := "right"
		switch answer := e.Answers[0]; {
		case answer.Wrong:
			got = "wrong"
		case answer.Part:
			got = "part"
		}
		if got != test.want || (got == "wrong") != (len(e.Problems) > before) {
			t.Errorf("%s: it is %s, want %s of %s", name, got, test.want, e.Answers[0].Expected)
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
		"":                      nil,
		"zone a,b":              {ForZones: zones("a", "b")},
		"no local zone":         {ForZones: zones(elsewhere), ForNodes: []discoveryv1.ForNode{{Name: elsewhere}}},
		"node x, zone a":        {ForZones: zones("a"), ForNodes: []discoveryv1.ForNode{{Name: "x"}}},
		"node x, no local zone": {ForZones: zones(elsewhere), ForNodes: []discoveryv1.ForNode{{Name: "x"}}},
	} {
		if got := hintText(hints); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
