// SPDX-License-Identifier: Apache-2.0

package member

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// certificate returns a certificate in PEM.
func certificate(t *testing.T, from, to time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestLife(t *testing.T) {
	from, to := time.Unix(1795176000, 0), time.Unix(1795262400, 0)
	ends := jwt(`{"iat":1795176000,"exp":1795262400}`)
	pem := certificate(t, from, to)
	both, unknown := Life{from, to}, Life{}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte(ends+"\n"), 0o600))
	for name, test := range map[string]struct {
		config rest.Config
		want   Life
	}{
		"a token that ends":       {rest.Config{BearerToken: ends}, both},
		"a token without an end":  {rest.Config{BearerToken: jwt(`{"iat":1795176000}`)}, Life{Issued: from}},
		"a token of no such kind": {rest.Config{BearerToken: "secret"}, unknown},
		"a token file":            {rest.Config{BearerTokenFile: file}, both},
		"a missing file":          {rest.Config{BearerTokenFile: file + ".none"}, unknown},
		"a certificate":           {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: pem}}, both},
		"no certificate":          {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, unknown},
		"nothing":                 {rest.Config{}, unknown},
	} {
		got := Credential{Config: &test.config}.Life()
		if !got.Issued.Equal(test.want.Issued) || !got.Expires.Equal(test.want.Expires) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if got := (Credential{}).Life(); got != unknown {
		t.Errorf("no credential: got %v", got)
	}
}
