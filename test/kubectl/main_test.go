// SPDX-License-Identifier: Apache-2.0

// Package kubectl runs kubectl clusterset as a person would, on three real
// control planes with our controller and our CoreDNS in each.
//
// The clusters are one bed for all tests, which run one after the other: the
// first joins them, the last takes them apart.
package kubectl

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	_ "github.com/clusterset-dns/clusterset-dns/cmd/coredns/plugins" // CoreDNS's own plugins.
	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster" // The plugin that answers.
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

func TestClusterset(t *testing.T) {
	b := newBed(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"dry run", testDryRun},
		{"join", testJoin},
		{"rights of a credential", testRights},
		{"export", testExport},
		{"explain", testExplain},
		{"coredns", testCoreDNS},
		{"port forward", testPortForward},
		{"stale", testStale}, // by the ways of the first join
		{"check", testCheck},
		{"drain", testDrain},
		{"rotate", testRotate},
		{"leave", testLeave},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, b) }) && test.name == "join" {
			return // the next ones rest on it
		}
	}
}
