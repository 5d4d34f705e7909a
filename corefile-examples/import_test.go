// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/miekg/dns"
)

// importing has the server block that `kubectl clusterset coredns enable --image` adds, and that of another zone.
const importing = `(multicluster-options) {
    kubeconfig %s
    startup_timeout 1m
}
clusterset.local:0 {
    bind 127.0.0.1
    errors
    ready 127.0.0.1:0
    import %s/*.conf
}
.:0 {
    bind 127.0.0.1
    errors
    template IN TXT example.org {
        answer "{{ .Name }} 5 IN TXT other"
    }
}
`

// The Corefile must outlast the image: if the stock one is restored, CoreDNS still starts with it.
func TestAnImportWorksWithOurImageAndWithTheStockOne(t *testing.T) {
	line, err := os.ReadFile("../cmd/coredns/multicluster.conf")
	if err != nil {
		t.Fatal(err)
	}
	ours := dnsserver.Directives
	stock := slices.DeleteFunc(slices.Clone(ours), func(name string) bool { return name == "multicluster" })
	kubeconfig := clusterOf(t, "ServiceImport", "EndpointSlice")
	for name, image := range map[string]struct {
		directives []string
		file       string
		want       string
	}{
		"ours":                {ours, string(line), "1.0.0"},
		"stock":               {stock, "", "SERVFAIL"},
		"stock with the file": {stock, string(line), "Unknown directive 'multicluster'"},
	} {
		t.Run(name, func(t *testing.T) {
			setDirectives(t, image.directives)
			folder := t.TempDir()
			if image.file != "" {
				if err := os.WriteFile(filepath.Join(folder, "multicluster.conf"), []byte(image.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			instance, err := caddy.Start(caddy.CaddyfileInput{
				Filepath: "Corefile", Contents: fmt.Appendf(nil, importing, kubeconfig, folder), ServerTypeName: "dns",
			})
			if err != nil {
				if !strings.Contains(err.Error(), image.want) {
					t.Errorf("it starts with %v, want %s", err, image.want)
				}
				return
			}
			t.Cleanup(func() {
				for _, err := range append(instance.ShutdownCallbacks(), instance.Stop()) {
					if err != nil {
						t.Error(err)
					}
				}
			})
			address := instance.Servers()[0].LocalAddr().String()
			for qname, want := range map[string]string{
				"dns-version.clusterset.local.": image.want,
				"www.example.org.":              "other",
			} {
				if got := text(t, address, qname); got != want {
					t.Errorf("%s: %s, want %s", qname, got, want)
				}
			}
		})
	}
}

// setDirectives sets those of the process until the test ends.
func setDirectives(t *testing.T, directives []string) {
	t.Helper()
	before := dnsserver.Directives
	if err := dnsserver.SetDirectives(directives); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dnsserver.Directives = before })
}

// text is that of the TXT record of a name, or the response code.
func text(t *testing.T, address, qname string) string {
	t.Helper()
	reply, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion(qname, dns.TypeTXT), address)
	if err != nil {
		t.Fatal(err)
	}
	for _, rr := range reply.Answer {
		if txt, ok := rr.(*dns.TXT); ok {
			return strings.Join(txt.Txt, " ")
		}
	}
	return dns.RcodeToString[reply.Rcode]
}
