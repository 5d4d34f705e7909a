// SPDX-License-Identifier: Apache-2.0

package join

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

// An Address is that of an API server.
type Address struct {
	// Server is its URL.
	Server string
	// Name is the server name in its certificate, empty if that is the host of Server.
	Name string
	// Proxy is the URL of the proxy before it, empty for none.
	Proxy string
}

// own is the address in a configuration.
func own(config *rest.Config) Address {
	address := Address{Server: config.Host, Name: config.ServerName}
	if config.Proxy != nil {
		if proxy, err := config.Proxy(&http.Request{URL: &url.URL{Scheme: "https"}}); err == nil && proxy != nil {
			address.Proxy = proxy.String()
		}
	}
	return address
}

// String is the address as messages show it, without a password.
func (a Address) String() string {
	if proxy, err := url.Parse(a.Proxy); err == nil && a.Proxy != "" {
		return a.Server + " through " + proxy.Redacted()
	}
	return a.Server
}

// anonymous is the address without the login to its proxy.
func (a Address) anonymous() Address {
	if proxy, err := url.Parse(a.Proxy); err == nil && proxy.User != nil {
		proxy.User = nil
		a.Proxy = proxy.String()
	}
	return a
}

// reach returns the address at which the reader reads its source. The address in
// the Secret stays unless the options set another, because users may reach an API
// server at another address than clusters. reach reports a difference.
func (p *peering) reach() Address {
	users := own(p.source.Config).anonymous()
	if server := p.Servers[p.source.Context]; server != "" {
		return Address{Server: server, Name: users.Name}
	}
	if p.secret == nil {
		return users
	}
	// The controller rejects an invalid kubeconfig.
	before, err := clientcmd.RESTConfigFromKubeConfig(p.secret.Data[names.KubeconfigKey])
	if err != nil || !strings.HasPrefix(before.Host, "https://") {
		return users
	}
	had := own(before)
	if had.anonymous() != users {
		p.Teller.Did("%s keeps reading %s at %s (Secret %s) instead of %s. To use another address, set --server %s=https://…",
			p.readerID, p.sourceID, had, p.secret.Name, users, p.source.Context)
	}
	return had
}

// Loopback reports whether an address is a loopback address.
func Loopback(server string) bool {
	address, err := url.Parse(server)
	if err != nil {
		return false
	}
	if address.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(address.Hostname())
	return err == nil && ip.IsLoopback()
}
