// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// A recorder is what a proxy saw.
type recorder struct {
	mu    sync.Mutex
	saw   bytes.Buffer
	asked []string // the addresses that it was asked for
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.saw.Write(p)
}

func (r *recorder) ask(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, address)
}

func (r *recorder) all() (asked []string, saw string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked, r.saw.String()
}

// join copies between a client and the server that it asked for.
func (r *recorder) join(client net.Conn, from io.Reader, server net.Conn) {
	go func() {
		defer server.Close()
		_, _ = io.Copy(io.MultiWriter(server, r), from)
	}()
	defer client.Close()
	_, _ = io.Copy(io.MultiWriter(client, r), server)
}

// proxyFor starts a proxy that connects every request to one server, whatever name it asks for, and returns its address.
// A certificate makes it an https proxy.
func proxyFor(t *testing.T, server string, serve func(*recorder, net.Conn, string), certificate *tls.Certificate) (string, *recorder) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if certificate != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}})
	}
	t.Cleanup(func() { listener.Close() })
	seen := &recorder{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(seen, connection, server)
		}
	}()
	return address, seen
}

// connect serves a CONNECT request.
func connect(seen *recorder, client net.Conn, server string) {
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil || request.Method != http.MethodConnect {
		client.Close()
		return
	}
	seen.ask(request.Host + " " + request.Header.Get("Proxy-Authorization"))
	to, err := net.Dial("tcp", server)
	if err != nil {
		client.Close()
		return
	}
	fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	seen.join(client, reader, to)
}

// socks5 serves a request of RFC 1928 without authentication, for a name.
func socks5(seen *recorder, client net.Conn, server string) {
	read := func(n int) []byte {
		got := make([]byte, n)
		if _, err := io.ReadFull(client, got); err != nil {
			client.Close()
		}
		return got
	}
	read(int(read(2)[1])) // the methods
	_, _ = client.Write([]byte{5, 0})
	head := read(5) // version, command, reserved, type, length of the name
	name := read(int(head[4]))
	port := read(2)
	seen.ask(fmt.Sprintf("%s:%d ", name, int(port[0])<<8|int(port[1])))
	to, err := net.Dial("tcp", server)
	if err != nil {
		client.Close()
		return
	}
	_, _ = client.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	seen.join(client, client, to)
}

// terminate is a proxy that answers for the server.
func terminate(certificate *tls.Certificate) func(*recorder, net.Conn, string) {
	return func(seen *recorder, client net.Conn, _ string) {
		reader := bufio.NewReader(client)
		if _, err := http.ReadRequest(reader); err != nil {
			return
		}
		fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
		server := tls.Server(client, &tls.Config{Certificates: []tls.Certificate{*certificate}})
		defer server.Close()
		_, _ = io.Copy(seen, server)
	}
}

// behind returns the kubeconfig of a server that only a proxy resolves, with the name in the server's certificate.
func behind(server *httptest.Server, proxy string) string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return kubeconfig(`{token: s3cr3t}`, fmt.Sprintf(
		`{server: "https://west.invalid:6443", tls-server-name: example.com, certificate-authority-data: %s, proxy-url: %q}`,
		base64.StdEncoding.EncodeToString(authority), proxy))
}

// apiServer answers requests over HTTP/2, and with more than maxAnswer for /large.
func apiServer(t *testing.T) *httptest.Server {
	t.Helper()
	return listening(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Authorization") != "Bearer s3cr3t" {
			t.Errorf("got %s with %q", r.Proto, r.Header.Get("Authorization"))
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, maxAnswer+1))
		}
	})
}

// TestProxies: a member is read through the proxy of its kubeconfig, in a Secret and in a file. The proxy gets its password,
// resolves the server's name and sees no plaintext, and responses are bounded as without it.
func TestProxies(t *testing.T) {
	server := apiServer(t)
	for scheme, serve := range map[string]func(*recorder, net.Conn, string){
		"http": connect, "https": connect, "socks5": socks5,
	} {
		t.Run(scheme, func(t *testing.T) {
			var certificate *tls.Certificate
			user, password := "", ""
			switch scheme {
			case "https":
				certificate = &server.TLS.Certificates[0]
			case "http":
				user, password = "user:password@", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:password"))
			}
			address, seen := proxyFor(t, server.Listener.Addr().String(), serve, certificate)
			text := []byte(behind(server, scheme+"://"+user+address))
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			inSecret, err := ParseKubeconfig(text)
			inFile, errFile := LoadKubeconfig(path)
			if err != nil || errFile != nil {
				t.Fatal(err, errFile)
			}
			for _, credential := range []Credential{inSecret, inFile} {
				if got := ProxyOf(credential.Config); got == nil || got.Scheme != scheme || got.Host != address {
					t.Errorf("got the proxy %v", got)
				}
				client, closeConnections, err := newHTTPClient(credential.Config, patience)
				if err != nil {
					t.Fatal(err)
				}
				defer closeConnections()
				if got := request(t, client, "https://west.invalid:6443/version"); got != http.StatusOK {
					t.Errorf("got %d", got)
				}
				client.Transport = &frameLimiter{base: client.Transport, event: 1, patience: patience}
				if _, err := client.Get("https://west.invalid:6443/large"); !errors.Is(err, errTooLarge) { //nolint:bodyclose,noctx // there is none
					t.Errorf("a large response: %v", err)
				}
			}
			asked, saw := seen.all()
			if len(asked) != 2 || asked[0] != "west.invalid:6443 "+password {
				t.Errorf("the proxy was asked for %q", asked)
			}
			if len(saw) < maxAnswer || strings.Contains(saw, "s3cr3t") || strings.Contains(saw, "/version") {
				t.Errorf("the proxy saw %d bytes, or plaintext", len(saw))
			}
		})
	}
}

// TestProxyThatTerminatesTLS: it gets no request.
func TestProxyThatTerminatesTLS(t *testing.T) {
	server := apiServer(t)
	pair, key, err := cert.GenerateSelfSignedCertKey("example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	another, err := tls.X509KeyPair(pair, key)
	if err != nil {
		t.Fatal(err)
	}
	address, seen := proxyFor(t, "", terminate(&another), nil)
	credential, err := ParseKubeconfig([]byte(behind(server, "http://"+address)))
	if err != nil {
		t.Fatal(err)
	}
	client, closeConnections, err := newHTTPClient(credential.Config, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConnections()
	_, err = client.Get("https://west.invalid:6443/version") //nolint:bodyclose,noctx // there is none
	if unknown := (*tls.CertificateVerificationError)(nil); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
	if _, saw := seen.all(); saw != "" {
		t.Errorf("the proxy saw %q", saw)
	}
}

// TestSilentProxy: a request through a proxy that answers nothing fails, so that it is retried.
func TestSilentProxy(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				credential, err := ParseKubeconfig([]byte(kubeconfig(aToken,
					`{server: "https://192.0.2.1:6443", proxy-url: "`+scheme+`://192.0.2.2:1080"}`)))
				if err != nil {
					t.Fatal(err)
				}
				config := rest.CopyConfig(credential.Config)
				config.Dial = func(context.Context, string, string) (net.Conn, error) {
					here, there := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, there) }()
					return here, nil
				}
				client, closeConnections, err := newHTTPClient(config, patience)
				if err != nil {
					t.Fatal(err)
				}
				defer closeConnections()
				if _, err := client.Get("https://192.0.2.1:6443/version"); err == nil { //nolint:bodyclose,noctx // there is none
					t.Error("no error")
				}
			})
		})
	}
}
