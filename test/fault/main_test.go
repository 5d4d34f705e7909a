// SPDX-License-Identifier: Apache-2.0

// Package fault breaks what can break in a clusterset, and asserts what is
// written and what is answered while it lasts and after.
//
// Three clusters are shared by the tests: east, which looks on, and west and
// north, which it has for members. Each test has controllers, a CoreDNS and
// namespaces of its own, and mends what it breaks. The clocks of the controllers
// stand still unless a test moves them on, so that nothing depends on how fast
// the machine is.
package fault

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	_ "github.com/clusterset-dns/clusterset-dns/cmd/coredns/plugins" // CoreDNS's own plugins.
	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster" // The plugin that answers.
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) {
	caddy.Quiet, dnsserver.Quiet = true, true
	directives := slices.Clone(dnsserver.Directives)
	at := slices.Index(directives, "kubernetes")
	if err := dnsserver.SetDirectives(slices.Insert(directives, at, "multicluster")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	controlplanetest.Main(m)
}

var shared = controlplanetest.Shared(
	controlplane.Options{Name: "east", Zones: []string{}},
	controlplane.Options{Name: "west", Zones: []string{}},
	controlplane.Options{Name: "north", Zones: []string{}},
)
