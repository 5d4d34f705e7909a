// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"golang.org/x/net/proxy"
)

// A dial opens connections.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dial implements proxy.Dialer.
func (d dial) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// socks returns a dial through a SOCKS5 proxy, bounded by dialTimeout: http.Transport would wait for the proxy without limit.
func socks(through *url.URL, direct dial) (dial, error) {
	dialer, err := proxy.FromURL(through, direct)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return dialer.(proxy.ContextDialer).DialContext(ctx, network, address)
	}, nil
}
