// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A tunnel is a proxy that connects every client to one server, whatever name the client asks for. It records the names.
type tunnel struct {
	server string

	mu    sync.Mutex
	asked []string
}

// join copies between the server and a client.
func (p *tunnel) join(client net.Conn, asked string) {
	defer client.Close()
	p.mu.Lock()
	p.asked = append(p.asked, asked)
	p.mu.Unlock()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	}()
	_, _ = io.Copy(client, server)
}

// ServeHTTP serves a CONNECT request.
func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if client, _, err := http.NewResponseController(w).Hijack(); err == nil {
		fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
		p.join(client, r.Host+" "+r.Header.Get("Proxy-Authorization"))
	}
}

// socks5 serves requests of RFC 1928 without authentication, for names.
func (p *tunnel) socks5(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			read := func(n int) []byte {
				got := make([]byte, n)
				if _, err := io.ReadFull(client, got); err != nil {
					client.Close()
				}
				return got
			}
			read(int(read(2)[1])) // the methods
			_, _ = client.Write([]byte{5, 0})
			name := read(int(read(5)[4])) // version, command, reserved, type, length of the name
			port := binary.BigEndian.Uint16(read(2))
			_, _ = client.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
			p.join(client, fmt.Sprintf("%s:%d ", name, port))
		}()
	}
}

// serve starts the proxy, and returns its address.
func (p *tunnel) serve(t *testing.T, scheme string) string {
	t.Helper()
	if scheme == "socks5" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { listener.Close() })
		go p.socks5(listener)
		return listener.Addr().String()
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// behind returns the kubeconfig of a server that only a proxy resolves, with the CA of its certificate and the name in it.
func behind(authority []byte, proxy string) string {
	return kubeconfig(`{token: s3cr3t}`, fmt.Sprintf(
		`{server: "https://west.invalid:6443", tls-server-name: example.com, certificate-authority-data: %s, proxy-url: %q}`,
		base64.StdEncoding.EncodeToString(authority), proxy))
}

// clientOf returns the client of a kubeconfig.
func clientOf(t *testing.T, kubeconfig string) *http.Client {
	t.Helper()
	credential, err := ParseKubeconfig([]byte(kubeconfig))
	must(t, err)
	client, err := newHTTPClient(credential.Config)
	must(t, err)
	return client
}

// TestProxies: a member is read through the proxy of its kubeconfig. The proxy gets its password, and resolves the
// server's name. TLS ends at the server, which TestProxyThatTerminatesTLS proves.
func TestProxies(t *testing.T) {
	server := listening(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Authorization") != "Bearer s3cr3t" {
			t.Errorf("got %s with %q", r.Proto, r.Header.Get("Authorization"))
		}
	})
	for scheme, with := range map[string]struct{ login, authorization string }{
		"http": {"user:password@", "Basic dXNlcjpwYXNzd29yZA=="}, "socks5": {},
	} {
		t.Run(scheme, func(t *testing.T) {
			proxy := &tunnel{server: server.Listener.Addr().String()}
			client := clientOf(t, behind(authorityOf(server), scheme+"://"+with.login+proxy.serve(t, scheme)))
			if got := request(t, client, "https://west.invalid:6443/version"); got != http.StatusOK {
				t.Errorf("got %d", got)
			}
			proxy.mu.Lock()
			defer proxy.mu.Unlock()
			if len(proxy.asked) != 1 || proxy.asked[0] != "west.invalid:6443 "+with.authorization {
				t.Errorf("the proxy was asked for %q", proxy.asked)
			}
		})
	}
}

// TestProxyThatTerminatesTLS: such a proxy gets no request.
func TestProxyThatTerminatesTLS(t *testing.T) {
	imposter := listening(t, func(http.ResponseWriter, *http.Request) { t.Error("it gets a request") })
	proxy := &tunnel{server: imposter.Listener.Addr().String()}
	now := time.Now()
	client := clientOf(t, behind(certificate(t, now, now.Add(time.Hour)), "http://"+proxy.serve(t, "http")))
	_, err := client.Get("https://west.invalid:6443/version") //nolint:bodyclose,noctx // there is none
	if unknown := (*tls.CertificateVerificationError)(nil); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
}

// TestSilentProxy: a request through a proxy that answers nothing fails, so that it is retried. Package proxy dials with a context.
func TestSilentProxy(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				credential, err := ParseKubeconfig([]byte(kubeconfig(aToken,
					`{server: "https://192.0.2.1:6443", proxy-url: "`+scheme+`://192.0.2.2:1080"}`)))
				must(t, err)
				config := rest.CopyConfig(credential.Config)
				config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					if _, bounded := ctx.Deadline(); scheme == "socks5" && !bounded {
						t.Error("the dial has no context, so x/net may close the connection after the dial")
					}
					here, there := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, there) }()
					return here, nil
				}
				client, err := newHTTPClient(config)
				must(t, err)
				if _, err := client.Get("https://192.0.2.1:6443/version"); err == nil { //nolint:bodyclose,noctx // there is none
					t.Error("no error")
				}
			})
		})
	}
}
