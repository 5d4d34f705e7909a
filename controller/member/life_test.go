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
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
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
	if err := errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path)); err != nil { // atomically
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
		"a token file":             {rest.Config{BearerTokenFile: file([]byte(ends + "\n"))}, both},
		"a file precedes its copy": {rest.Config{BearerToken: jwt("{}"), BearerTokenFile: file([]byte(ends))}, both},
		"a certificate":            {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: pem}}, both},
		"no certificate":           {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")}}, unknown},
		"a missing file":           {rest.Config{BearerTokenFile: filepath.Join(t.TempDir(), "none")}, unknown},
		"nothing":                  {rest.Config{}, unknown},
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

// TestChangedFilesReconnect: a kubeconfig or CA that changed on disk is used within a minute. A file that cannot be read or did
// not change keeps the connection and the restrictions of the member.
func TestChangedFilesReconnect(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	config := func(server, rank string) []byte {
		return []byte(annotated(kubeconfig(`{token: t}`, `{server: "`+server+`", certificate-authority: ca.pem}`),
			`{clusterset-dns.github.io/cidrs: 10.3.0.0/16, clusterset-dns.github.io/rank: `+rank+`}`))
	}
	now := time.Now()
	write(t, path("config"), config("https://192.0.2.1", `"5"`))
	write(t, path("ca.pem"), certificate(t, now, now.Add(time.Hour)))
	synctest.Test(t, func(t *testing.T) {
		joined := 0
		around := having()
		around.tracked = func(*Member) { joined++ }
		members := around.members(Config{
			Cluster: "east", Clock: clock.RealClock{}, Static: []Static{{Cluster: "west", Kubeconfig: path("config")}},
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") },
		})
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
		defer cancel()
		members.Join(ctx, nil)
		go members.Run(ctx)
		for _, step := range []struct {
			name, file string
			content    []byte
			joined     int
		}{
			{"a new server", "config", config("https://192.0.2.2", `"5"`), 1},
			{"a new CA", "ca.pem", certificate(t, now, now.Add(2*time.Hour)), 1},
			{"the same", "config", config("https://192.0.2.2", `"5"`), 0},
			{"annotations of no form", "config", config("https://192.0.2.3", "5"), 0},
			{"a broken kubeconfig", "config", []byte("{"), 0},
		} {
			joined = 0
			write(t, path(step.file), step.content)
			<-time.After(time.Minute) // of virtual time
			synctest.Wait()
			if joined != step.joined {
				t.Errorf("%s: it connected %d times, want %d", step.name, joined, step.joined)
			}
			if m := members.Get("west"); len(m.CIDRs()) != 1 || m.Rank() != 5 || len(m.Annotations()) != 2 {
				t.Errorf("%s: prefixes %v, rank %d, annotations %v", step.name, m.CIDRs(), m.Rank(), m.Annotations())
			}
		}
		if refused := members.Refused(); len(refused) != 1 {
			t.Errorf("a broken kubeconfig: problems %v", refused)
		}
	})
}
