// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/coredns/caddy"
)

// newController returns a controller for a block in the server block ".:53".
func newController(input string) *caddy.Controller {
	c := caddy.NewTestController("dns", input)
	c.ServerBlockKeys = []string{".:53"}
	return c
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		input string
		keys  []string
		zones string
	}{
		{"multicluster", []string{"example.org.:53", "Example.COM.:53"}, "example.org. example.com."},
		{"multicluster", []string{".:53"}, "clusterset.local."}, // by default
		{"multicluster", []string{".:53", "example.org.:53"}, "clusterset.local. example.org."},
		{"multicluster b.example A.example B.example", []string{".:53"}, "b.example. a.example."},
		{"multicluster .", nil, "."},
		{"multicluster 10.42.0.0/16 clusterset.local ip6.arpa {\ncluster east\n}", nil, "clusterset.local. 42.10.in-addr.arpa. ip6.arpa."},
	} {
		c := caddy.NewTestController("dns", test.input)
		c.ServerBlockKeys = test.keys
		got, err := parse(c)
		if err != nil || strings.Join(got.config.Zones, " ") != test.zones || got.config.Reverse != strings.Count(test.zones, ".arpa.") {
			t.Errorf("%q in %q: %v, %v", test.input, test.keys, got, err)
		}
	}
	for options, want := range map[string]string{
		"":                             "",
		"kubeconfig /etc/kubeconfig":   "Kubeconfig=/etc/kubeconfig",
		"fallback services":            "FallbackServices=true",
		"namespaces a b\nnamespaces c": "Namespaces=[a b c]",
		"namespace_labels a=b,c":       "NamespaceLabels=a=b,c",
		"labels tier in (a, b)":        "Labels=tier in (a,b)",
		"ttl 0":                        "ttl=0",
		"fallthrough":                  "fallthrough=[.]",
		"startup_timeout 1m":           "startup_timeout=1m0s",
		"max_answers 16":               "max_answers=16",
		"cluster East.Example":         "cluster=east.example",
		"prefer none":                  "prefer=1",
		"prefer cluster\ncluster east": "prefer=2 cluster=east",
		"zonal":                        "TopologyZones=true",
		"cluster east\nprefer zone":    "prefer=3 cluster=east Nodes=true",
		// The options of coredns/multicluster.
		"kubeconfig /etc/kubeconfig east\nnoendpoints\nfallthrough in-addr.arpa": "fallthrough=[in-addr.arpa.] " +
			"Kubeconfig=/etc/kubeconfig Context=east NoEndpoints=true",
	} {
		got, err := parse(newController("multicluster {\n" + options + "\n}"))
		if err != nil {
			t.Errorf("%q: %v", options, err)
		} else if settings := settings(got); settings != want {
			t.Errorf("%q: got %s, want %s", options, settings, want)
		}
	}
}

// settings returns the settings that differ from the defaults.
func settings(m *Multicluster) string {
	var all []string
	usual := newMulticluster()
	add := func(name string, got, usual any) {
		if !reflect.DeepEqual(got, usual) {
			all = append(all, fmt.Sprint(name, "=", got))
		}
	}
	add("fallthrough", m.Fall.Zones, usual.Fall.Zones)
	add("ttl", m.config.TTL, usual.config.TTL)
	add("max_answers", m.maxAnswers, usual.maxAnswers)
	add("prefer", m.prefer, usual.prefer)
	add("cluster", m.config.Cluster, usual.config.Cluster)
	add("startup_timeout", m.startupTimeout, usual.startupTimeout)
	got, base := reflect.ValueOf(m.options), reflect.ValueOf(usual.options)
	for i := range got.NumField() {
		add(got.Type().Field(i).Name, got.Field(i).Interface(), base.Field(i).Interface())
	}
	return strings.Join(all, " ")
}

func TestParseErrorsNameFileLineAndForm(t *testing.T) {
	tests := []struct{ input, want string }{
		{
			"multicluster {\nttl 5\npods verified\n}",
			"Testfile:3 - Error during parsing: unknown property 'pods'; allowed are: " +
				"cluster, fallback, fallthrough, groups, ignore, kubeconfig, labels, max_answers, namespace_labels, namespaces, noendpoints, " +
				"prefer, startup_timeout, ttl, zonal",
		},
		{"multicluster clusterset.local a..b", `Testfile:1 - Error during parsing: "a..b" is no zone`},
		{"multicluster {\nfallthrough in-addr.arpa a..b\n}", `fallthrough: "a..b" is no zone`},
		{"multicluster {\nnamespaces a, b\n}", `namespaces: "a," is no name of a namespace`},
		{"multicluster {\nlabels a in\n}", "no label selector"},
		{"multicluster {\nttl 5\nttl 3601\n}", `Testfile:3 - Error during parsing: ttl: "3601" is no number from 0 to 3600`},
		{"multicluster {\nttl 1 2\n}", "the form is: ttl SECONDS"},
		{"multicluster {\nignore all\n}", "the form is: ignore empty_service"},
		{"multicluster {\nignore empty_service\nnoendpoints\n}", "noendpoints cannot be set with fallback endpoints, ignore or zonal"},
		{"multicluster {\nstartup_timeout 5\n}", `"5" is no duration`},
		{"multicluster {\nstartup_timeout -5s\n}", `"-5s" is no duration`},
		{"multicluster {\ncluster a.b.c\n}", `"a.b.c" is no id of a cluster`},
		{"multicluster {\ncluster east\nprefer region\n}", `"region" is no preference`},
		{"multicluster {\nprefer zone\n}", "prefer needs to know which cluster this is"},
		{"multicluster {\nmax_answers 0\n}", `"0" is no number from 1 to 65535`},
		{"multicluster {\nfallback pods\n}", "the form is: fallback [services] [endpoints]"},
		{"multicluster {\nfallback endpoints\nnoendpoints\n}", "noendpoints cannot be set with"},
		{"multicluster {\nzonal\nnoendpoints\n}", "noendpoints cannot be set with"},
		{"multicluster {\ngroups apps\n}", `"apps" is neither multicluster.x-k8s.io nor net.gke.io`},
		{"multicluster {\nnamespaces a\nnamespace_labels b\n}", "namespaces and namespace_labels cannot both be set"},
		{"multicluster 10.in-addr.arpa {\ncluster east\n}", "list the zone of the names"},
		{"multicluster clusterset.local 10.in-addr.arpa", "name it with cluster ID"},
		{"multicluster\nmulticluster", "this plugin can only be used once per Server Block"},
		{
			"multicluster {\nkubeconfig /does/not/exist\n}",
			"plugin/multicluster: Testfile:3 - Error during parsing: kubeconfig \"/does/not/exist\" (if empty, the service account of the pod): ",
		},
		{"multicluster", `kubeconfig "" (if empty, the service account of the pod): invalid configuration`},
	}
	for name, o := range options {
		if o.least > 0 {
			tests = append(tests, struct{ input, want string }{
				"multicluster {\n" + name + "\n}",
				"Testfile:2 - Error during parsing: " + name + ": wrong arguments; the form is: " + name + " " + o.form,
			})
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, tc := range tests {
		err := setup(newController(tc.input))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: the error is\n%v\nwant in it\n%s", tc.input, err, tc.want)
		}
	}
}
