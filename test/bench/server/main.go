// SPDX-License-Identifier: Apache-2.0

// Command server is a CoreDNS with the plugins multicluster and floor: the same program serves both sides of a
// comparison, depending on its Corefile.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"

	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster"
	_ "github.com/clusterset-dns/clusterset-dns/test/bench/floor"
)

func main() {
	if err := dnsserver.SetDirectives([]string{"bind", "floor", "multicluster"}); err != nil {
		panic(err)
	}
	coremain.Run()
}
