// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"slices"
	"testing"
)

func TestServes(t *testing.T) {
	for text, want := range map[string]bool{
		". {\n multicluster clusterset.local\n}":                               true,
		". {\n multicluster a.example clusterset.local {\n fallthrough\n }\n}": true,
		"clusterset.local {\n multicluster\n}":                                 true,
		". {\n multicluster\n}":                                                true,
		". {\n multicluster example.org\n}":                                    false,
		"example.org {\n multicluster clusterset.local\n}":                     false,
		"local {\n errors\n}\n. {\n multicluster clusterset.local\n}":          false,
		"CLUSTERSET.local. {\n multicluster Clusterset.Local.\n}":              true,
	} {
		if got := parse(t, text).Serves("clusterset.local"); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestOption(t *testing.T) {
	for text, want := range map[string][]string{
		". {\n multicluster clusterset.local\n}":                                                    nil,
		". {\n errors\n cluster east\n}":                                                            nil,
		". {\n multicluster clusterset.local {\n prefer zone\n cluster east # here\n }\n}":          {"east"},
		". {\n multicluster example.org {\n cluster a\n }\n multicluster {\n cluster b c\n }\n}":    {"b", "c"},
		". {\n multicluster {\n cluster\n prefer none\n }\n}":                                       {},
		". {\n multicluster cluster.example clusterset.local {\n namespaces cluster\n ttl 5\n }\n}": nil,
		"example.org {\n multicluster clusterset.local {\n cluster east\n }\n}":                     nil,
	} {
		if got := parse(t, text).Option("clusterset.local", "cluster"); !slices.Equal(got, want) ||
			(got == nil) != (want == nil) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestBy(t *testing.T) {
	for text, want := range map[string]string{
		". {\n multicluster clusterset.local\n forward . 192.0.2.1\n}":                                                 ByMulticluster,
		". {\n kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n }\n}":                     ByKubernetes,
		"clusterset.local:53 {\n kubernetes clusterset.local {\n pods disabled\n multicluster clusterset.local.\n}\n}": ByKubernetes,
		". {\n kubernetes cluster.local example.org {\n multicluster example.org\n }\n}":                               "",
		". {\n kubernetes cluster.local {\n pods multicluster\n }\n}":                                                  "",
		"clusterset.local:53 {\n forward . 10.96.0.99\n}\n. {\n errors\n}":                                             ByForward,
		". {\n forward clusterset.local 10.96.0.99\n forward . /etc/resolv.conf\n}":                                    ByForward,
		". {\n import /etc/other/*.conf\n}":                                                                            "",
		". {\n forward . /etc/resolv.conf\n}":                                                                          "",
		"example.org {\n forward . 192.0.2.1\n}":                                                                       "",
	} {
		if got := parse(t, text).By("clusterset.local"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func parse(t *testing.T, text string) *Corefile {
	t.Helper()
	corefile, err := ParseCorefile(text)
	if err != nil {
		t.Fatal(err)
	}
	return corefile
}
