// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/net/proxy"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// proxyOf returns the proxy that a kubeconfig names, nil for none. It ignores proxies of the environment.
func proxyOf(config *rest.Config) *url.URL {
	if config.Proxy == nil {
		return nil
	}
	through, err := config.Proxy(&http.Request{URL: &url.URL{Scheme: "https"}})
	if err != nil {
		return nil
	}
	return through
}

// checkProxy refuses a proxy-url that client-go would refuse. Its errors do not quote the URL, which may have a password.
func checkProxy(cluster *clientcmdapi.Cluster) error {
	if cluster == nil || cluster.ProxyURL == "" {
		return nil
	}
	through, err := url.Parse(cluster.ProxyURL)
	if err != nil || through.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, through.Scheme) {
		return errors.New("the proxy-url is no URL of a proxy: use http://, https:// or socks5:// with a host and a port")
	}
	return nil
}

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
