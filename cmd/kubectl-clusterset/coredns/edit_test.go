// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"strings"
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

const options = "(multicluster-options) {\n    cluster east\n}\n"

const mark = "# clusterset.local was added by kubectl clusterset coredns enable; coredns disable removes it.\n"

// TestEnableAndDisable holds what each mode adds, that a second time adds nothing, and that Disable restores the text.
func TestEnableAndDisable(t *testing.T) {
	type test struct{ mode, before, after string }
	for name, test := range map[string]test{
		"image": {ByMulticluster, kubeadm, options + kubeadm + mark + `clusterset.local:53 {
    errors
    prometheus :9153
    ready
    import /etc/clusterset-dns/*.conf
}
`},
		"forward": {ByForward, kubeadm, kubeadm + mark + `clusterset.local:53 {
    errors
    prometheus :9153
    ready
    forward . 10.96.0.99 fd00:96::99
}
`},
		"stock": {ByKubernetes, kubeadm, strings.Replace(kubeadm, "    kubernetes cluster.local in-addr.arpa ip6.arpa {\n",
			"    kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {\n        multicluster clusterset.local\n", 1)},
		"access lists, addresses and the log are taken over, comments stay": {
			ByForward,
			"# mine\nexample.org:53 {\n\tforward . 192.0.2.1 # theirs\n}\ndns://.:1053 {\n\tbind 169.254.20.10\n\tacl {\n\t\tallow net 10.0.0.0/8\n\t\tblock\n\t}\n\tlog\n}\n",
			"# mine\nexample.org:53 {\n\tforward . 192.0.2.1 # theirs\n}\ndns://.:1053 {\n\tbind 169.254.20.10\n\tacl {\n\t\tallow net 10.0.0.0/8\n\t\tblock\n\t}\n\tlog\n}\n" +
				mark + "dns://clusterset.local:1053 {\n\tacl {\n\t\tallow net 10.0.0.0/8\n\t\tblock\n\t}\n\tbind 169.254.20.10\n\tlog\n    forward . 10.96.0.99 fd00:96::99\n}\n",
		},
		"line ends of Windows": {ByMulticluster, ". {\r\n  errors\r\n}\r\n", strings.ReplaceAll(options, "\n", "\r\n") +
			". {\r\n  errors\r\n}\r\n" + strings.ReplaceAll(mark+"clusterset.local {\n  errors\n    import /etc/clusterset-dns/*.conf\n}\n", "\n", "\r\n")},
		"files that are not here": {
			ByMulticluster,
			"import custom/*.server\n. {\n  import /etc/hostname\n  errors\n}\n",
			options + "import custom/*.server\n. {\n  import /etc/hostname\n  errors\n}\n" + mark +
				"clusterset.local {\n  errors\n    import /etc/clusterset-dns/*.conf\n}\n",
		},
		"a server block of the zone": {
			ByMulticluster,
			"clusterset.local {\n  errors\n}\n. {\n  kubernetes\n}\n",
			options + "clusterset.local {\n  import /etc/clusterset-dns/*.conf\n  errors\n}\n. {\n  kubernetes\n}\n",
		},
		"stock, several keys and a cache that serves stale answers": {
			ByKubernetes,
			". example.org {\n  kubernetes cluster.local {\n    ttl 5\n  }\n  cache 30 {\n    serve_stale\n  }\n}\n",
			". example.org {\n  kubernetes cluster.local clusterset.local {\n      multicluster clusterset.local\n    ttl 5\n  }\n  cache 30 {\n      disable success clusterset.local\n      disable denial clusterset.local\n    serve_stale\n  }\n}\n",
		},
		"stock, as kubeadm excludes its zone from the cache": {
			ByKubernetes,
			". {\n  kubernetes cluster.local {\n  }\n  cache 30 {\n    disable success cluster.local\n    disable denial cluster.local\n  }\n}\n",
			". {\n  kubernetes cluster.local clusterset.local {\n      multicluster clusterset.local\n  }\n  cache 30 {\n    disable success cluster.local clusterset.local\n    disable denial cluster.local clusterset.local\n  }\n}\n",
		},
		"stock, a cache that raises TTLs": {
			ByKubernetes,
			". {\n  kubernetes cluster.local {\n  }\n  cache {\n    success 100 300 60\n  }\n}\n",
			". {\n  kubernetes cluster.local clusterset.local {\n      multicluster clusterset.local\n  }\n  cache {\n      disable success clusterset.local\n      disable denial clusterset.local\n    success 100 300 60\n  }\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := parse(t, test.before)
			if before.By("clusterset.local") != "" {
				t.Error("the zone is said to be answered before")
			}
			got, err := before.Enable("clusterset.local.", Way{test.mode, []string{"10.96.0.99", "fd00:96::99"}, "east"})
			if err != nil || got != test.after {
				t.Fatalf("got %v\n%s\nwant\n%s", err, got, test.after)
			}
			after := parse(t, got)
			if by := after.By("clusterset.local"); by != test.mode {
				t.Errorf("the zone is said to be answered by %q", by)
			}
			if id := after.Option("clusterset.local", "cluster"); (len(id) == 1 && id[0] == "east") != (test.mode == ByMulticluster) {
				t.Errorf("the option cluster is %v", id)
			}
			if again, err := after.Enable("clusterset.local", Way{Mode: test.mode}); err != nil || again != got {
				t.Errorf("a second time changes it: %v\n%s", err, again)
			}
			if back, reverted := after.Disable("clusterset.local"); back != test.before || !reverted {
				t.Errorf("got back\n%s\nwant\n%s", back, test.before)
			}
		})
	}
	// A directive without a block gets one, which stays.
	option, err := parse(t, ". {\n  kubernetes cluster.local # mine\n}\n").Enable("clusterset.local", Way{Mode: ByKubernetes})
	if want := ". {\n  kubernetes cluster.local clusterset.local {\n      multicluster clusterset.local\n  }\n}\n"; err != nil || option != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, option, want)
	}
}

// TestDisableKeepsWhatOthersWrote also holds that what was added to our server block goes with it.
func TestDisableKeepsWhatOthersWrote(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"our block was edited": {
			". {\n  errors\n}\n" + mark + "clusterset.local {\n  multicluster {\n    cluster east\n  }\n}\n# after\n",
			". {\n  errors\n}\n# after\n",
		},
		"another zone": {
			". {\n  multicluster example.org\n}\n", ". {\n  multicluster example.org\n}\n",
		},
		"a directive that was written by hand": {
			"clusterset.local {\n  multicluster\n}\n", "clusterset.local {\n  multicluster\n}\n",
		},
		"a forward that was written by hand": {
			"clusterset.local {\n  forward . 192.0.2.1\n}\n", "clusterset.local {\n  forward . 192.0.2.1\n}\n",
		},
		"an option with several zones": {
			". {\n  kubernetes a b {\n    multicluster clusterset.local b\n  }\n}\n",
			". {\n  kubernetes a b {\n    multicluster clusterset.local b\n  }\n}\n",
		},
	} {
		got, reverted := parse(t, test.before).Disable("clusterset.local")
		if got != test.after || reverted != (test.before != test.after) {
			t.Errorf("%s: got %v\n%s\nwant\n%s", name, reverted, got, test.after)
		}
	}
}

func TestEnableSaysWhyNot(t *testing.T) {
	for text, want := range map[string]string{
		"example.org {\n errors\n}":                    "the Corefile has no server block for clusterset.local: add one, or one for the root zone",
		"clusterset.local {\n forward . 10.96.0.99\n}": "the Corefile already serves clusterset.local with the plugin forward: remove that first, with `kubectl clusterset coredns disable` if `enable` added it",
		"clusterset.local {\n}":                        "the server block clusterset.local of the Corefile is empty: add the line `import /etc/clusterset-dns/*.conf` to it",
	} {
		if _, err := parse(t, text).Enable("clusterset.local", Way{Mode: ByMulticluster}); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	const want = "no directive kubernetes with zones is in the server block . of the Corefile: add it, or forward the zone"
	for _, text := range []string{". {\n errors\n}", ". {\n kubernetes\n}", ". {\n kubernetes {\n }\n}"} {
		if _, err := parse(t, text).Enable("clusterset.local", Way{Mode: ByKubernetes}); err == nil || err.Error() != want {
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
	f.Add(options + ". {\n import a\n}")
	f.Add(". {\n kubernetes a b {\n }\n cache 30 {\n serve_stale\n }\n}")
	f.Fuzz(func(t *testing.T, text string) {
		corefile, err := ParseCorefile(text)
		if err != nil {
			return
		}
		_, _ = corefile.Disable("clusterset.local")
		for _, mode := range []string{ByMulticluster, ByForward, ByKubernetes} {
			enabled, err := corefile.Enable("clusterset.local", Way{mode, []string{"10.96.0.99"}, "east"})
			if err != nil {
				continue
			}
			again, err := ParseCorefile(enabled)
			if err != nil {
				t.Fatalf("%q became %q: %v", text, enabled, err)
			}
			if twice, err := again.Enable("clusterset.local", Way{Mode: mode}); err != nil || twice != enabled {
				t.Errorf("%q became %q, and then %q: %v", text, enabled, twice, err)
			}
		}
	})
}
