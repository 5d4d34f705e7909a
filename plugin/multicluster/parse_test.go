// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name  string
		input string
		keys  []string
		want  func(*Multicluster)
	}{
		{
			"the zones of the server block", "multicluster",
			[]string{"example.org.:53", "Example.COM.:53"},
			func(m *Multicluster) {
				m.Zones = []string{"example.org.", "example.com."}
			},
		},
		{"the default zone in a server block of the root", "multicluster", []string{".:53"}, nil},
		{
			"the default zone for the root zone of several", "multicluster",
			[]string{".:53", "example.org.:53"},
			func(m *Multicluster) { m.Zones = []string{"clusterset.local.", "example.org."} },
		},
		{"zones in the order of the Corefile", "multicluster b.example A.example B.example", []string{".:53"}, func(m *Multicluster) {
			m.Zones = []string{"b.example.", "a.example."}
		}},
		{
			"the options of coredns/multicluster",
			"multicluster clusterset.local {\nkubeconfig /etc/kubeconfig east\nnoendpoints\nfallthrough in-addr.arpa\n}", nil,
			func(m *Multicluster) {
				m.options.Kubeconfig, m.options.Context, m.options.NoEndpoints = "/etc/kubeconfig", "east", true
				m.Fall.Zones = []string{"in-addr.arpa."}
			},
		},
		{"the root zone by name", "multicluster .", nil, func(m *Multicluster) { m.Zones = []string{"."} }},
		{"kubeconfig", "multicluster {\nkubeconfig /etc/kubeconfig\n}", nil, func(m *Multicluster) {
			m.options.Kubeconfig = "/etc/kubeconfig"
		}},
		{"kubeconfig and context", "multicluster {\nkubeconfig /etc/kubeconfig east\n}", nil, func(m *Multicluster) {
			m.options.Kubeconfig, m.options.Context = "/etc/kubeconfig", "east"
		}},
		{"namespaces", "multicluster {\nnamespaces a b\nnamespaces c\n}", nil, func(m *Multicluster) {
			m.options.Namespaces = []string{"a", "b", "c"}
		}},
		{"namespace_labels", "multicluster {\nnamespace_labels a=b,c\n}", nil, func(m *Multicluster) {
			m.options.NamespaceLabels = "a=b,c"
		}},
		{"labels", "multicluster {\nlabels tier in (a, b)\n}", nil, func(m *Multicluster) {
			m.options.Labels = "tier in (a,b)"
		}},
		{"clusterset", "multicluster {\nclusterset blue\n}", nil, func(m *Multicluster) { m.options.ClusterSet = "blue" }},
		{"ttl", "multicluster {\nttl 0\n}", nil, func(m *Multicluster) { m.ttl = 0 }},
		{"noendpoints", "multicluster {\nnoendpoints\n}", nil, func(m *Multicluster) { m.options.NoEndpoints = true }},
		{"fallthrough", "multicluster {\nfallthrough\n}", nil, func(m *Multicluster) { m.Fall.Zones = []string{"."} }},
		{"fallthrough of zones", "multicluster {\nfallthrough a.example\n}", nil, func(m *Multicluster) {
			m.Fall.Zones = []string{"a.example."}
		}},
		{"startup_timeout", "multicluster {\nstartup_timeout 1m\n}", nil, func(m *Multicluster) {
			m.startupTimeout = time.Minute
		}},
		{"max_answers", "multicluster {\nmax_answers 16\n}", nil, func(m *Multicluster) { m.maxAnswers = 16 }},
		{
			"cluster", "multicluster {\ncluster East.Example\n}", nil,
			func(m *Multicluster) { m.cluster = "east.example" },
		},
		{
			"prefer none", "multicluster {\nprefer none\n}", nil,
			func(m *Multicluster) { m.prefer = object.PreferNone },
		},
		{"prefer cluster", "multicluster {\nprefer cluster\ncluster east\n}", nil, func(m *Multicluster) {
			m.prefer, m.cluster = object.PreferCluster, "east"
		}},
		{"prefer zone", "multicluster {\ncluster east\nprefer zone\n}", nil, func(m *Multicluster) {
			m.prefer, m.cluster, m.options.Zones = object.PreferZone, "east", true
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := caddy.NewTestController("dns", tc.input)
			c.ServerBlockKeys = tc.keys
			got, err := parse(c)
			if err != nil {
				t.Fatal(err)
			}
			want := newMulticluster()
			want.Zones = []string{"clusterset.local."}
			if tc.want != nil {
				tc.want(want)
			}
			if !slices.Equal(got.Zones, want.Zones) || !slices.Equal(got.Fall.Zones, want.Fall.Zones) ||
				got.ttl != want.ttl || got.maxAnswers != want.maxAnswers || got.prefer != want.prefer ||
				got.cluster != want.cluster || got.startupTimeout != want.startupTimeout ||
				!equalOptions(got.options, want.options) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestDefaultTTL(t *testing.T) {
	if got := newMulticluster().ttl; got != 5 {
		t.Errorf("got %d s, want the 5 s that the documents state", got)
	}
}

func equalOptions(a, b watch.Options) bool {
	return slices.Equal(a.Namespaces, b.Namespaces) && a.Kubeconfig == b.Kubeconfig && a.Context == b.Context &&
		a.NamespaceLabels == b.NamespaceLabels && a.Labels == b.Labels && a.ClusterSet == b.ClusterSet && a.NoEndpoints == b.NoEndpoints &&
		a.Zones == b.Zones
}

func TestParseErrorsNameFileLineAndForm(t *testing.T) {
	tests := []struct{ input, want string }{
		{
			"multicluster {\nttl 5\npods verified\n}",
			"Testfile:3 - Error during parsing: unknown property 'pods'; allowed are: " +
				"cluster, clusterset, fallback, fallthrough, groups, ignore, kubeconfig, labels, max_answers, namespace_labels, namespaces, noendpoints, " +
				"prefer, startup_timeout, ttl",
		},
		{"multicluster {\nkubeconfig\n}", "Testfile:2 - Error during parsing: kubeconfig: wrong arguments; " +
			"the form is: kubeconfig PATH [CONTEXT]"},
		{"multicluster {\nkubeconfig a b c\n}", "the form is: kubeconfig PATH [CONTEXT]"},
		{"multicluster {\nnamespaces\n}", "the form is: namespaces NAMESPACE..."},
		{"multicluster {\nnamespace_labels\n}", "the form is: namespace_labels EXPRESSION"},
		{"multicluster {\nlabels a in\n}", "no label selector"},
		{"multicluster {\nclusterset\n}", "the form is: clusterset NAME"},
		{"multicluster {\nclusterset Blue\n}", `"Blue" is no name of a cluster set`},
		{"multicluster {\nttl\n}", "the form is: ttl SECONDS"},
		{"multicluster {\nttl x\n}", `"x" is no number from 0 to 3600`},
		{"multicluster {\nttl 3601\n}", `"3601" is no number from 0 to 3600`},
		{"multicluster {\nttl -1\n}", `"-1" is no number from 0 to 3600`},
		{"multicluster {\nttl 1 2\n}", "the form is: ttl SECONDS"},
		{"multicluster {\nnoendpoints a\n}", "the form is: noendpoints"},
		{"multicluster {\nignore\n}", "the form is: ignore empty_service"},
		{"multicluster {\nignore all\n}", "the form is: ignore empty_service"},
		{
			"multicluster {\nignore empty_service\nnoendpoints\n}",
			"ignore empty_service and noendpoints cannot both be set",
		},
		{"multicluster {\nstartup_timeout\n}", "the form is: startup_timeout DURATION"},
		{"multicluster {\nstartup_timeout 5\n}", `"5" is no duration`},
		{"multicluster {\nstartup_timeout -5s\n}", `"-5s" is no duration`},
		{"multicluster {\ncluster\n}", "the form is: cluster ID"},
		{"multicluster {\ncluster a.b.c\n}", `"a.b.c" is no id of a cluster`},
		{"multicluster {\nprefer\n}", "the form is: prefer none|cluster|zone"},
		{"multicluster {\ncluster east\nprefer region\n}", `"region" is no preference`},
		{"multicluster {\nprefer zone\n}", "prefer needs to know which cluster this is"},
		{"multicluster {\nmax_answers 0\n}", `"0" is no number from 1 to 65535`},
		{"multicluster {\nfallback\n}", "the form is: fallback [services] [endpoints]"},
		{"multicluster {\nfallback pods\n}", "the form is: fallback [services] [endpoints]"},
		{"multicluster {\nfallback endpoints\nnoendpoints\n}", "fallback endpoints and noendpoints cannot both be set"},
		{"multicluster {\ngroups\n}", "the form is: groups GROUP..."},
		{"multicluster {\ngroups apps\n}", `"apps" is neither multicluster.x-k8s.io nor net.gke.io`},
		{"multicluster {\nttl 5\nlabels a=b\nttl 6\n}", "Testfile:4 - Error during parsing: ttl is given twice"},
		{"multicluster {\nnamespaces a\nnamespace_labels b\n}", "namespaces and namespace_labels cannot both be set"},
		{"multicluster 10.in-addr.arpa {\ncluster east\n}", "list the zone of the names"},
		{"multicluster clusterset.local 10.in-addr.arpa", "name it with cluster ID"},
		{"multicluster\nmulticluster", "this plugin can only be used once per Server Block"},
	}
	for _, tc := range tests {
		_, err := parse(caddy.NewTestController("dns", tc.input))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: the error is\n%v\nwant in it\n%s", tc.input, err, tc.want)
		}
	}
}

func TestWhatIsWrongWithAKubeconfigIsSaidAtTheStart(t *testing.T) {
	for _, tc := range []struct{ input, want string }{
		{
			"multicluster {\nkubeconfig /does/not/exist\n}",
			"plugin/multicluster: Testfile:3 - Error during parsing: kubeconfig /does/not/exist: ",
		},
		{"multicluster", "no kubeconfig is given, and this runs in no pod"},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		err := setup(caddy.NewTestController("dns", tc.input))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: the error is\n%v\nwant in it\n%s", tc.input, err, tc.want)
		}
	}
}

func TestReverseZonesAreToldFromOthers(t *testing.T) {
	m, err := parse(caddy.NewTestController("dns",
		"multicluster 10.42.0.0/16 clusterset.local ip6.arpa {\ncluster east\n}"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"clusterset.local.", "42.10.in-addr.arpa.", "ip6.arpa."}; !slices.Equal(m.Zones, want) {
		t.Errorf("the zones are %q, want %q", m.Zones, want)
	}
	if want := []string{"42.10.in-addr.arpa.", "ip6.arpa."}; !slices.Equal(m.Reverse, want) {
		t.Errorf("the reverse zones are %q, want %q", m.Reverse, want)
	}
}
