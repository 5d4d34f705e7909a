// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	socks5 "golang.org/x/net/proxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// newHTTPClient returns the client of one member. Unlike rest.HTTPClientFor it shares no transport: each member has its own
// HTTP/2 connection, so a heartbeat proves that the connection of the slices is alive. A request fails if its response does not
// begin within patience. It uses the proxy of the kubeconfig or, without one, of the environment.
func newHTTPClient(config *rest.Config) (*http.Client, error) {
	transportConfig, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("credential: %w", err)
	}
	tlsConfig, err := transport.TLSConfigFor(transportConfig)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	dial := dial((&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext)
	if transportConfig.DialHolder != nil {
		dial = transportConfig.DialHolder.Dial
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
		if through, err := proxy(nil); err == nil && through.Scheme == "socks5" { // it is the same for all requests
			if dial, err = socks(through, dial); err != nil {
				return nil, err
			}
			proxy = nil
		}
	}
	base := &http.Transport{
		Proxy:                  proxy,
		DialContext:            dial,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  patience,
		MaxResponseHeaderBytes: 16 << 10, // by default 10 MiB
		IdleConnTimeout:        idleTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, MaxReceiveBufferPerStream: 256 << 10},
	}
	wrapped, err := transport.HTTPWrappersForConfig(transportConfig, base)
	if err != nil {
		return nil, fmt.Errorf("credential: %w", err)
	}
	return &http.Client{
		Transport: wrapped,
		// A redirect would send the credential to a server of the member's choice.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// A dial opens connections.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dial implements proxy.Dialer.
func (d dial) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// DialContext implements proxy.ContextDialer. Without it, package proxy may close a connection after its dial has returned.
func (d dial) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// socks returns a dial through a SOCKS5 proxy, bounded by dialTimeout: http.Transport would wait for the proxy without limit.
func socks(through *url.URL, direct dial) (dial, error) {
	dialer, err := socks5.FromURL(through, direct)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return dialer.(socks5.ContextDialer).DialContext(ctx, network, address)
	}, nil
}
