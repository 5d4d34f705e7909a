// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"reflect"
	"strings"
	"testing"
)

// TestCorefile: which plugin serves the zone, and the id of the cluster that multicluster has.
func TestCorefile(t *testing.T) {
	for text, want := range map[string]struct {
		by string
		id []string
	}{
		". {\n multicluster clusterset.local\n}":                                                        {by: ByMulticluster},
		". {\n multicluster\n forward . 192.0.2.1\n}":                                                   {by: ByMulticluster},
		". {\n multicluster clusterset.local {\n prefer zone\n cluster east # here\n }\n}":              {ByMulticluster, []string{"east"}},
		". {\n multicluster example.org {\n cluster a\n }\n multicluster {\n cluster b c\n }\n}":        {ByMulticluster, []string{"b", "c"}},
		". {\n multicluster {\n cluster\n prefer none\n }\n}":                                           {ByMulticluster, []string{}},
		". {\n multicluster cluster.example clusterset.local {\n namespaces cluster\n ttl 5\n }\n}":     {by: ByMulticluster},
		"example.org {\n multicluster clusterset.local {\n cluster east\n }\n}":                         {},
		"(a) {\n multicluster {\n cluster east\n }\n}\nexample.org,\nCLUSTERSET.local. {\n import a\n}": {ByMulticluster, []string{"east"}},
		". {\n multicluster example.org\n}":                                                             {},
		"local {\n errors\n cluster east\n}\n. {\n multicluster clusterset.local\n}":                    {},
		". {\n kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n }\n}":      {},
		"clusterset.local:53 {\n forward . 10.96.0.99\n}\n. {\n errors\n}":                              {by: ByForward},
		". {\n forward clusterset.local 10.96.0.99\n forward . /etc/resolv.conf\n}":                     {by: ByForward},
		". {\n import /etc/other/*.conf\n forward . /etc/resolv.conf\n}":                                {},
		"example.org {\n forward . 192.0.2.1\n}":                                                        {},
	} {
		corefile := parse(t, text)
		if by, id := corefile.By(zone); by != want.by || !reflect.DeepEqual(id, want.id) {
			t.Errorf("%q: got %q, %#v, want %+v", text, by, id, want)
		}
	}
}

func TestPasses(t *testing.T) {
	const own = "cluster.local {\n bind 169.254.20.10 10.96.0.10\n forward . 10.96.0.2\n}\n"
	for text, want := range map[string]bool{
		own + ". {\n forward . /etc/resolv.conf\n}":                                       false,
		own + ". {\n forward . 10.96.0.2\n}":                                              true,
		own + ". {\n forward . 192.0.2.1\n}\nclusterset.local {\n forward . 10.96.0.2\n}": true,
		". {\n forward . 10.96.0.2\n}":                                                    false,
		own:                                                                               false,
	} {
		if got := parse(t, text).Passes("clusterset.local"); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestWith adds a server block, once, and removes it byte for byte. What an administrator changes meanwhile stays.
func TestWith(t *testing.T) {
	const added = "\n# BEGIN clusterset.local: added by kubectl clusterset coredns enable, removed by coredns disable\n"
	const rest = " {\n    errors\n    forward . 10.96.0.99 {\n        force_tcp\n    }\n}\n# END clusterset.local\n"
	for name, test := range map[string]struct{ before, key string }{
		"kubeadm": {kubeadm(t), "clusterset.local:53"},
		"the port is taken over": {
			"# mine\nexample.org:53 {\n\tforward . 192.0.2.1 # theirs\n}\ndns://.:1053 {\n\tlog\n\treload\n}\n", "dns://clusterset.local:1053",
		},
		"line ends of Windows":     {". {\r\n  errors\r\n  reload\r\n}\r\n", "clusterset.local"},
		"DNS over TLS comes first": {"tls://.:853 {\n  tls cert.pem key.pem\n}\n.:53 {\n  reload\n}\n", "clusterset.local:53"},
		"no line end":              {". {\n  errors\n  reload\n}", "clusterset.local"},
		"files that are elsewhere": {"import custom/*.server\n. {\n  import /etc/hostname\n  errors\n  reload\n}\n", "clusterset.local"},
		"snippets, and the environment of CoreDNS": {
			"(logs) {\n\tlog . \"a # b\"\n}\n.:{$PORT} {\n\timport logs\n\treload\n}\n", "clusterset.local:{$PORT}",
		},
	} {
		want := test.before + added + test.key + rest
		for _, text := range []string{test.before, want} {
			if got, err := with(text, zone, []string{"10.96.0.99"}); err != nil || got != want {
				t.Errorf("%s: got %v\n%s\nwant\n%s", name, err, got, want)
			}
		}
		if got := without("# edited\n"+want, zone); got != "# edited\n"+test.before || without(want, "example.net") != want {
			t.Errorf("%s: got back\n%s\nwant\n%s", name, got, test.before)
		}
	}
	for text, want := range map[string]string{
		". {\n  acl\n  reload\n}\n":                           "acl or bind",
		". {\n  errors\n}\n":                                  "no plugin reload",
		". { import /etc/hostname\n  reload\n}\n":             "on a line of its own",
		"clusterset.local {\n  errors\n}\n. {\n  reload\n}\n": "already has a server block for clusterset.local",
		". {\n  multicluster clusterset.local\n  reload\n}\n": "already serves clusterset.local with the plugin multicluster",
	} {
		if _, err := with(text, zone, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzParseCorefile: no text causes a panic, and the block that is added to a Corefile can be removed.
func FuzzParseCorefile(f *testing.F) {
	for _, seed := range []string{
		"", ". {\n errors\n reload\n}\n", "a:53, b {\n log . \"a \\\" b\" {\n class all\n }\n reload\n}",
		"(s) {\n reload\n}\n. {\n import s\n acl {\n import /etc/rules\n }\n}", "{$A} {%B%} {\n}\n}", "a b\r\nreload", "(a) {\n import a\n}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 || strings.Contains(text, "# BEGIN") {
			return // too long to be of use, or enabled already
		}
		corefile, err := ParseCorefile(text)
		if err != nil {
			return
		}
		by, _ := corefile.By(zone)
		corefile.Passes(zone)
		added, err := with(text, zone, []string{"10.96.0.99"})
		if err != nil {
			return
		}
		if after, _ := parse(t, added).By(zone); by != "" || after != ByForward || without(added, zone) != text {
			t.Errorf("served by %q, %q became %q and %q", by, text, added, without(added, zone))
		}
	})
}

func parse(t *testing.T, text string) *Corefile {
	t.Helper()
	corefile, err := ParseCorefile(text)
	must(t, err)
	return corefile
}
