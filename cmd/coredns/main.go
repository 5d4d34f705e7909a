// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS, with all its plugins, and the plugin multicluster before kubernetes.
//
// With the build tag slim it has those of package zone alone, for an image of its own; with bed those of package plugins,
// with which the demo and the tests build it.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster" // The plugin multicluster.
)

// version is set with -ldflags.
var version string

func main() {
	if err := dnsserver.SetDirectives(compiledIn(directives(dnsserver.Directives))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if asked := flag.Lookup("version"); asked != nil && asked.Value.String() == "true" {
		fmt.Println("clusterset-dns-" + versionOf(version, debug.ReadBuildInfo))
	}
	coremain.Run()
}

// directives puts multicluster before kubernetes: of two plugins that are authoritative for a zone the first answers.
func directives(stock []string) []string {
	at := slices.Index(stock, "kubernetes")
	if at < 0 {
		at = len(stock)
	}
	return slices.Insert(slices.Clone(stock), at, "multicluster")
}

// compiledIn are those of the directives whose plugin is part of this build, so that a Corefile with another one is
// refused as one with an unknown directive.
func compiledIn(all []string) []string {
	registered := caddy.ListPlugins()["others"]
	return slices.DeleteFunc(slices.Clone(all), func(directive string) bool {
		return !slices.Contains(registered, "dns."+directive) && !slices.Contains(registered, directive)
	})
}

// versionOf is the version that was set, or that of the module or the revision this was built from.
func versionOf(set string, read func() (*debug.BuildInfo, bool)) string {
	if set != "" {
		return set
	}
	info, ok := read()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "unknown"
}
