// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"slices"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/internal/pki"
)

func parse(t *testing.T, pair pki.Pair) *x509.Certificate {
	t.Helper()
	parsed, err := tls.X509KeyPair(pair.Certificate, pair.Key) // checks that they belong together
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Leaf
}

func TestCertificates(t *testing.T) {
	authority, err := pki.NewAuthority("east")
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewAuthority("east")
	if err != nil {
		t.Fatal(err)
	}
	pool := func(a *pki.Authority) *x509.CertPool {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(a.Certificate()) {
			t.Fatal("the authority's certificate does not parse")
		}
		return pool
	}
	server, err := authority.Server([]string{"localhost"}, []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fd00::1")})
	if err != nil {
		t.Fatal(err)
	}
	client, err := authority.Client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	if subject := parse(t, client).Subject; subject.CommonName != "admin" || !slices.Equal(subject.Organization, []string{"system:masters"}) {
		t.Errorf("the client is %v", subject)
	}

	for _, test := range []struct {
		name  string
		pair  pki.Pair
		roots *x509.CertPool
		usage x509.ExtKeyUsage
		host  string
		valid bool
	}{
		{"a server by name", server, pool(authority), x509.ExtKeyUsageServerAuth, "localhost", true},
		{"a server by address", server, pool(authority), x509.ExtKeyUsageServerAuth, "127.0.0.1", true},
		{"a server by IPv6 address", server, pool(authority), x509.ExtKeyUsageServerAuth, "fd00::1", true},
		{"a server by another name", server, pool(authority), x509.ExtKeyUsageServerAuth, "example.com", false},
		{"a server as a client", server, pool(authority), x509.ExtKeyUsageClientAuth, "", false},
		{"a server of an authority of the same name", server, pool(other), x509.ExtKeyUsageServerAuth, "localhost", false},
		{"a client", client, pool(authority), x509.ExtKeyUsageClientAuth, "", true},
		{"a client of an authority of the same name", client, pool(other), x509.ExtKeyUsageClientAuth, "", false},
	} {
		_, err := parse(t, test.pair).Verify(x509.VerifyOptions{Roots: test.roots, DNSName: test.host, KeyUsages: []x509.ExtKeyUsage{test.usage}})
		if (err == nil) != test.valid {
			t.Errorf("%s: %v, want valid %t", test.name, err, test.valid)
		}
	}
}
