// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"slices"
	"testing"
)

const kubeadm = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
}
`

func TestEnableAndDisable(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"as kubeadm has it": {kubeadm, `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    multicluster clusterset.local
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
}
`},
		"comments, tabs and what a user added stay": {
			"# mine\nexample.org:53 {\n\tforward . 192.0.2.1 # theirs\n}\n. {\n\tlog\n\t# before\n\tkubernetes cluster.local\n}\n",
			"# mine\nexample.org:53 {\n\tforward . 192.0.2.1 # theirs\n}\n. {\n\tlog\n\t# before\n\tmulticluster clusterset.local\n\tkubernetes cluster.local\n}\n",
		},
		"line ends of Windows": {
			". {\r\n  kubernetes cluster.local\r\n}\r\n",
			". {\r\n  multicluster clusterset.local\r\n  kubernetes cluster.local\r\n}\r\n",
		},
		"a block of its own": {
			"clusterset.local {\n  errors\n}\n. {\n  kubernetes\n}\n",
			"clusterset.local {\n  multicluster clusterset.local\n  errors\n}\n. {\n  kubernetes\n}\n",
		},
		"no kubernetes": {
			". {\n  whoami\n  errors\n}\n",
			". {\n  multicluster clusterset.local\n  whoami\n  errors\n}\n",
		},
		"files that are not here": {
			"import custom/*.server\n. {\n  import /etc/hostname\n  errors\n}\n",
			"import custom/*.server\n. {\n  import /etc/hostname\n  multicluster clusterset.local\n  errors\n}\n",
		},
		"scheme and port": {
			"dns://.:1053 {\n  errors\n}\n",
			"dns://.:1053 {\n  multicluster clusterset.local\n  errors\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := parse(t, test.before)
			if before.Serves("clusterset.local") {
				t.Error("it is said to serve the zone before")
			}
			got, err := before.Enable("clusterset.local.")
			if err != nil || got != test.after {
				t.Fatalf("got %v\n%s\nwant\n%s", err, got, test.after)
			}
			after := parse(t, got)
			if !after.Serves("clusterset.local") {
				t.Error("it is not said to serve the zone after")
			}
			if again, err := after.Enable("clusterset.local"); err != nil || again != got {
				t.Errorf("a second time changes it: %v\n%s", err, again)
			}
			if back := after.Disable("clusterset.local"); back != test.before {
				t.Errorf("got back\n%s\nwant\n%s", back, test.before)
			}
		})
	}
}

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

func TestDisableTakesOutItsOwnDirectiveAlone(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"with options that were added": {
			". {\n  errors\n  multicluster clusterset.local {\n    # a comment\n    cluster east\n  }\n  ready\n}\n",
			". {\n  errors\n  ready\n}\n",
		},
		"beside other zones": {
			". {\n  multicluster clusterset.local\n  multicluster example.org {\n    ttl 5\n  }\n}\nexample.net {\n  multicluster\n}\n",
			". {\n  multicluster example.org {\n    ttl 5\n  }\n}\nexample.net {\n  multicluster\n}\n",
		},
		"several zones": {
			". {\n  multicluster clusterset.local example.org\n}\n",
			". {\n  multicluster clusterset.local example.org\n}\n",
		},
		"the zones of its server block": {
			"clusterset.local {\n  multicluster\n}\n",
			"clusterset.local {\n  multicluster\n}\n",
		},
		"another zone": {
			". {\n  multicluster example.org\n}\n",
			". {\n  multicluster example.org\n}\n",
		},
	} {
		if got := parse(t, test.before).Disable("clusterset.local"); got != test.after {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.after)
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
		". {\n forward . /etc/resolv.conf\n}":                                                                          "",
		"example.org {\n forward . 192.0.2.1\n}":                                                                       "",
	} {
		if got := parse(t, text).By("clusterset.local"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestEnableSaysWhyNot(t *testing.T) {
	for text, want := range map[string]string{
		"example.org {\n errors\n}":                                                  "no server block of the Corefile answers for clusterset.local: add one, or one for the root zone",
		"clusterset.local {\n forward . 10.96.0.99\n}":                               "the Corefile already answers for clusterset.local with the plugin forward, which multicluster would replace: remove that from the Corefile first if this is what you want",
		". {\n kubernetes clusterset.local {\n multicluster clusterset.local\n }\n}": "the Corefile already answers for clusterset.local with the plugin kubernetes, which multicluster would replace: remove that from the Corefile first if this is what you want",
		". {\n}": "the server block . of the Corefile is empty: add the line multicluster clusterset.local to it",
	} {
		if _, err := parse(t, text).Enable("clusterset.local"); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, err := ParseCorefile(". {\n errors"); err == nil {
		t.Error("a block without an end parses")
	}
}

func FuzzEnable(f *testing.F) {
	f.Add(kubeadm)
	f.Add(". {\n multicluster {\n }\n}")
	f.Fuzz(func(t *testing.T, text string) {
		corefile, err := ParseCorefile(text)
		if err != nil {
			return
		}
		_ = corefile.Disable("clusterset.local")
		enabled, err := corefile.Enable("clusterset.local")
		if err != nil {
			return
		}
		again, err := ParseCorefile(enabled)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, enabled, err)
		}
		if twice, err := again.Enable("clusterset.local"); err != nil || twice != enabled {
			t.Errorf("%q became %q, and then %q: %v", text, enabled, twice, err)
		}
	})
}

func parse(t *testing.T, text string) *Corefile {
	t.Helper()
	corefile, err := ParseCorefile(text)
	if err != nil {
		t.Fatal(err)
	}
	return corefile
}
