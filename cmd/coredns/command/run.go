// SPDX-License-Identifier: Apache-2.0

// Package command is CoreDNS with the plugins in zone.go and plugins.go, the plugins that the program imports, and the plugin
// multicluster before kubernetes.
package command

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster" // The plugin multicluster.
)

// Main runs CoreDNS, with the version that was set when it was built.
func Main(set string) {
	if err := dnsserver.SetDirectives(Directives()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if asked := flag.Lookup("version"); asked != nil && asked.Value.String() == "true" {
		fmt.Println("clusterset-dns-" + cmp.Or(set, "unknown"))
	}
	coremain.Run()
}

// Directives returns the directives in their order: multicluster is before kubernetes, because the first of two plugins that are
// authoritative for a zone answers. CoreDNS refuses a Corefile with a directive whose plugin is not in the program.
func Directives() []string {
	return slices.Insert(slices.Clone(dnsserver.Directives), slices.Index(dnsserver.Directives, "kubernetes"), "multicluster")
}
