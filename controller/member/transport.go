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

// How long a connection that has gone silent is believed to live. A heartbeat arrives every 5 s, so a connection
// without a frame for pingAfter is probed, and closed when the probe is not answered within pingTimeout.
const (
	dialTimeout         = 10 * time.Second
	tlsHandshakeTimeout = 10 * time.Second
	pingAfter           = 10 * time.Second
	pingTimeout         = 5 * time.Second
	// idleTimeout closes a connection that became idle after its client was closed: one that was being made, or whose
	// requests were just canceled.
	idleTimeout = 90 * time.Second
)

// patience is how long a member's API server has for an answer to a list, and for the beginning of a watch. A probe
// tells of the connection alone: what stands between may answer it and have lost a request. An API server answers
// within 60 s, or says that it cannot (kube-apiserver's --request-timeout).
const patience = 70 * time.Second

// newHTTPClient returns the one client through which a member is read, and the function that closes its connections.
// Unlike rest.HTTPClientFor it shares no transport with anyone, so that one member means one HTTP/2 connection, and a
// heartbeat proves the very connection that the slices come by. A request of which no answer begins in time fails.
func newHTTPClient(config *rest.Config, patience time.Duration) (*http.Client, func(), error) {
	transportConfig, err := config.TransportConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("credential: %w", err)
	}
	tlsConfig, err := transport.TLSConfigFor(transportConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("TLS: %w", err)
	}
	dial := (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	if transportConfig.DialHolder != nil {
		dial = transportConfig.DialHolder.Dial
	}
	proxy := http.ProxyFromEnvironment
	if transportConfig.Proxy != nil {
		proxy = transportConfig.Proxy
	}
	base := &http.Transport{
		Proxy:                 proxy,
		DialContext:           dial,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   tlsHandshakeTimeout,
		ResponseHeaderTimeout: patience,
		IdleConnTimeout:       idleTimeout,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	wrapped, err := transport.HTTPWrappersForConfig(transportConfig, base)
	if err != nil {
		return nil, nil, fmt.Errorf("credential: %w", err)
	}
	client := &http.Client{
		Transport: wrapped,
		// A redirect would carry the credential to where the member says.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client, base.CloseIdleConnections, nil
}
