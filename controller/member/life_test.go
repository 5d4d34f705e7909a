// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// certificate returns a certificate in PEM.
func certificate(t *testing.T, from, to time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// write returns a file with the content.
func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path)); err != nil { // at once
		t.Fatal(err)
	}
	return path
}

func TestLife(t *testing.T) {
	from, to := time.Unix(1795176000, 0), time.Unix(1795262400, 0)
	ends := jwt(`{"iat":1795176000,"exp":1795262400}`)
	pem := certificate(t, from, to)
	file := func(content []byte) string { return write(t, filepath.Join(t.TempDir(), "file"), content) }
	both, unknown := Life{from, to}, Life{}
	for name, test := range map[string]struct {
		config rest.Config
		want   Life
	}{
		"a token that ends":        {rest.Config{BearerToken: ends}, both},
		"a token without an end":   {rest.Config{BearerToken: jwt(`{"iat":1795176000}`)}, Life{Issued: from}},
		"a token of no such kind":  {rest.Config{BearerToken: "secret"}, unknown},
		"a token that is no JSON":  {rest.Config{BearerToken: jwt("{")}, unknown},
		"a token not in base64":    {rest.Config{BearerToken: "a.?.b"}, unknown},
		"a token file":             {rest.Config{BearerTokenFile: file([]byte(ends + "\n"))}, both},
		"a file precedes its copy": {rest.Config{BearerToken: jwt("{}"), BearerTokenFile: file([]byte(ends))}, both},
		"a certificate":            {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: pem}}, both},
		"no certificate":           {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, unknown},
		"a certificate cut short": {
			rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}},
			unknown,
		},
		"a missing file": {rest.Config{BearerTokenFile: filepath.Join(t.TempDir(), "none")}, unknown},
		"nothing":        {rest.Config{}, unknown},
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

// TestChangedFilesReconnect: a kubeconfig, certificate or CA that changed on disk is used within sourceInterval. One that
// cannot be read keeps the connection, and so does a file that did not change.
func TestChangedFilesReconnect(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	config := func(server string) []byte {
		return []byte(kubeconfig(`{token: t}`, `{server: "`+server+`", certificate-authority: ca.pem}`))
	}
	write(t, path("config"), config("https://192.0.2.1"))
	now := time.Now()
	write(t, path("ca.pem"), certificate(t, now, now.Add(time.Hour)))

	fake := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	joined := make(chan *Member, 1)
	around := having()
	around.tracked = func(m *Member) { joined <- m }
	members := around.members(Config{
		Cluster: "east", Clock: fake, Static: []Static{{Cluster: "west", Kubeconfig: path("config")}},
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") },
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { members.Run(ctx); close(done) }()
	<-joined

	next := func(change string) {
		t.Helper()
		for {
			fake.Step(sourceInterval)
			select {
			case <-joined:
				return
			case <-t.Context().Done():
				t.Fatalf("%s did not reconnect", change)
			case <-time.After(time.Millisecond):
			}
		}
	}
	write(t, path("config"), config("https://192.0.2.2"))
	next("a new server")
	write(t, path("ca.pem"), certificate(t, now, now.Add(2*time.Hour)))
	next("a new CA")

	cancel()
	<-done
	sources, _ := gather(members.config, nil, nil, nil)
	if !members.connected["west"].source.keeps(sources["west"]) {
		t.Error("unchanged files reconnect")
	}
	write(t, path("config"), []byte("{"))
	sources, problems := gather(members.config, nil, nil, nil)
	if len(problems) != 1 || sources["west"].err == nil {
		t.Errorf("a broken kubeconfig: problems %v", problems)
	}
}
