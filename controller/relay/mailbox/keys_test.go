// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

func privatePEM(t testing.TB, key crypto.PrivateKey) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func publicPEM(t testing.TB, key crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestParseSigningKey(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := privatePEM(t, key(1))
	if got, err := ParseSigningKey([]byte("\n" + good + "\n")); err != nil || !got.Equal(key(1)) {
		t.Errorf("got %v, %v", got, err)
	}
	tests := map[string]struct{ text, want string }{
		"empty":   {"", "no PEM"},
		"garbage": {"x" + good, "no PEM"},
		"cut":     {good[:60], "no PEM"},
		"two":     {good + good, "more than one"},
		"public":  {publicPEM(t, key(1).Public()), "PUBLIC KEY"},
		"rsa":     {privatePEM(t, rsaKey), "RSA instead of Ed25519: make one with: openssl genpkey"},
		"ecdsa":   {privatePEM(t, ecKey), "ECDSA instead of Ed25519"},
		"pkcs1":   {strings.ReplaceAll(good, "PRIVATE", "RSA PRIVATE"), "RSA PRIVATE KEY"},
		"der":     {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})), "no PKCS #8"},
		"large":   {strings.Repeat(good, 200), "bytes"},
	}
	for name, test := range tests {
		if _, err := ParseSigningKey([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestParsePublicKeys(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	one, two := publicPEM(t, key(1).Public()), publicPEM(t, key(2).Public())
	got, err := ParsePublicKeys([]byte("\n" + one + "\n\n" + two + one))
	if err != nil || len(got) != 2 || !got[0].Equal(key(1).Public()) || !got[1].Equal(key(2).Public()) {
		t.Errorf("got %v, %v", got, err)
	}
	var many strings.Builder
	for seed := range byte(maxKeys + 1) {
		many.WriteString(publicPEM(t, key(seed).Public()))
	}
	tests := map[string]struct{ text, want string }{
		"empty":   {" \n", "no public key"},
		"garbage": {one + "x", "public key 2 is no PEM"},
		"private": {one + privatePEM(t, key(1)), "public key 2 is a private key"},
		"rsa":     {publicPEM(t, rsaKey.Public()), "RSA instead of Ed25519"},
		"other":   {strings.ReplaceAll(one, "PUBLIC KEY", "CERTIFICATE"), "CERTIFICATE"},
		"der":     {string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})), "cannot be parsed"},
		"many":    {many.String(), "more than 8"},
		"large":   {strings.Repeat(one, 200), "bytes"},
	}
	for name, test := range tests {
		if _, err := ParsePublicKeys([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
