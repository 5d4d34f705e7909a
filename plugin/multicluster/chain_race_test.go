// SPDX-License-Identifier: Apache-2.0

//go:build race

package multicluster

import (
	"os"
	"path/filepath"
	"testing"

	_ "github.com/coredns/coredns/plugin/dnssec" // pulls in a cloud SDK: 90 packages that the first tier need not compile
	"github.com/miekg/dns"
)

// chainsOfManyPackages returns chains with plugins that take long to compile.
func chainsOfManyPackages(t *testing.T) map[string]string {
	return map[string]string{"dnssec": "dnssec clusterset.local {\n key file " + signingKey(t) + "\n}\nloadbalance\n"}
}

// signingKey makes a key for the zone and returns the path of its files without their suffixes.
func signingKey(t *testing.T) string {
	t.Helper()
	key := &dns.DNSKEY{
		Hdr:   dns.RR_Header{Name: testZone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600},
		Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256,
	}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	for suffix, text := range map[string]string{".key": key.String(), ".private": key.PrivateKeyString(private)} {
		if err := os.WriteFile(path+suffix, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}
