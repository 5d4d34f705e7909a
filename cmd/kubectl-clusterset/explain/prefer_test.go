// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

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

// TestDNSThatPrefersOrNot: without the Corefile, answers show whether DNS prefers the endpoints of the local cluster.
func TestDNSThatPrefersOrNot(t *testing.T) {
	const unread = "The options of the DNS server are unknown: without `cluster east`, it returns all endpoints."
	for name, test := range map[string]struct{ west, got, note string }{
		"all":                    {"10.1.0.1", "10.0.0.1 10.1.0.1", "DNS returns all endpoints: its Corefile has no `cluster east`."},
		"near ones":              {"10.1.0.1", "10.0.0.1", ""},
		"others":                 {"10.1.0.1", "10.2.0.1", unread},
		"none of other clusters": {"", "10.0.0.1", unread},
	} {
		f := newFacts()
		f.Imports[0].Annotations = map[string]string{export.AnnotationPrefer: "local"}
		for cluster, address := range map[string]string{"east": "10.0.0.1", "west": test.west} {
			if address != "" {
				slice := f.Slices[0].DeepCopy()
				slice.Labels[export.LabelSourceCluster] = cluster
				slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}}}
				f.Slices = append(f.Slices, slice)
			}
		}
		e := Of(f, service, DefaultZone)
		if e.Preference.Note != unread {
			t.Errorf("%s, before an answer: %+v", name, e.Preference)
		}
		before := len(e.Problems)
		e.Answered("a server", dns.Answer{Type: "A", Rcode: "NOERROR", Records: strings.Fields(test.got)})
		if e.Preference.Note != test.note || (name == "all" || name == "others") != (len(e.Problems) > before) {
			t.Errorf("%s: note %q, want %q; problems %+v", name, e.Preference.Note, test.note, e.Problems)
		}
	}
}

// TestWaiting: hints keep ready endpoints waiting, unless kube-proxy ignores the hints.
func TestWaiting(t *testing.T) {
	const elsewhere = "elsewhere.clusterset-dns.github.io"
	for name, test := range map[string]struct {
		kind       v1beta1.ServiceImportType
		one, other string // the zones in the hints of two endpoints
		ready      bool   // the first of them
		want       string
	}{
		"waits": {
			v1beta1.ClusterSetIP, "a", elsewhere, true,
			"1 of 2 endpoints (1 waiting): used ready, waiting hints put east first: used only if no endpoint there is ready",
		},
		"no hints":           {v1beta1.ClusterSetIP, "", "", true, "2 of 2 endpoints: used ready, used ready"},
		"one without a hint": {v1beta1.ClusterSetIP, "a", "", true, "2 of 2 endpoints: used ready, used ready"},
		"a third without a hint": {
			v1beta1.ClusterSetIP, "a", elsewhere, true, "3 of 3 endpoints: used ready, used ready, used ready",
		},
		"none is first":               {v1beta1.ClusterSetIP, "a", elsewhere, false, "1 of 2 endpoints (1 not ready): not ready not ready in east, used ready"},
		"zones of all":                {v1beta1.ClusterSetIP, "a", "b", true, "2 of 2 endpoints: used ready, used ready"},
		"headless, so no hints count": {v1beta1.Headless, "a", elsewhere, true, "2 of 2 endpoints: used ready, used ready"},
	} {
		f := newFacts()
		f.Imports[0].Spec.Type = test.kind
		zones := []string{test.one, test.other}
		if name == "a third without a hint" {
			zones = append(zones, "")
		}
		for i, zone := range zones {
			slice := f.Slices[0].DeepCopy()
			slice.Ports = []discoveryv1.EndpointPort{{}}
			endpoint := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.0.1", i)}}
			if i == 0 && !test.ready {
				endpoint.Conditions.Ready = new(false)
			}
			if zone != "" {
				endpoint.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
			}
			slice.Endpoints = []discoveryv1.Endpoint{endpoint}
			f.Slices = append(f.Slices, slice)
		}
		e := Of(f, service, DefaultZone)
		_, got, _ := strings.Cut(e.Summary, "Traffic goes to ")
		got = strings.TrimSuffix(got, ".") + ":"
		for i, each := range e.Endpoints {
			if got += " " + each.State + " " + each.Reason; i < len(e.Endpoints)-1 {
				got += ","
			}
		}
		if got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
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
