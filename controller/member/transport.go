// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"net"
	"net/http"
	"time"

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
