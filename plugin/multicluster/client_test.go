// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"net"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/request"
)

func TestClientBehindAProxy(t *testing.T) {
	proxy, client := net.IPv4(192, 0, 2, 1), net.IPv4(10, 1, 0, 1)
	for name, remote := range map[string]net.Addr{
		"UDP":                &net.UDPAddr{IP: client},
		"TCP":                &net.TCPAddr{IP: client},
		"UDP behind a proxy": proxyproto.NewAddr(&net.UDPAddr{IP: proxy}, &net.UDPAddr{IP: client}, nil),
		"TCP behind a proxy": proxyproto.NewAddr(&net.TCPAddr{IP: proxy}, &net.TCPAddr{IP: client}, []byte{1}),
	} {
		if got := clientIP(&request.Request{W: &packer{remote: remote}}); got != netip.MustParseAddr(client.String()) {
			t.Errorf("%s: got %s, want %s", name, got, client)
		}
	}
	if got := clientIP(&request.Request{W: &packer{remote: &net.UnixAddr{}}}); got.IsValid() {
		t.Errorf("no IP: got %s", got)
	}
}
