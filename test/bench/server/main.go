// SPDX-License-Identifier: Apache-2.0

// Command server is CoreDNS with all its plugins and with multicluster, as cmd/coredns is, and with the plugin floor
// besides: one program that serves all that is compared, by its Corefile.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/core/plugin" // CoreDNS's own plugins.
	"github.com/coredns/coredns/coremain"

	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster"
	_ "github.com/clusterset-dns/clusterset-dns/test/bench/floor"
)

func main() {
	stock := dnsserver.Directives
	at := max(slices.Index(stock, "kubernetes"), 0)
	if err := dnsserver.SetDirectives(slices.Insert(slices.Clone(stock), at, "floor", "multicluster")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	coremain.Run()
}
