// SPDX-License-Identifier: Apache-2.0

// Package kubectl runs kubectl clusterset as an administrator would, on three real
// control planes with our controller and our CoreDNS in each.
//
// The clusters are one bed for all tests, which run one after the other: the
// first joins them, the last takes them apart.
package kubectl

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

func TestClusterset(t *testing.T) {
	b := newBed(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"dry run", testDryRun},
		{"join", testJoin},
		{"export", testExport},
		{"explain", testExplain},
		{"stale", testStale}, // by the ways of the first join
		{"check", testCheck},
		{"drain", testDrain},
		{"rotate", testRotate},
		{"sysdump", testSysdump},
		{"leave", testLeave},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, b) }) && test.name == "join" {
			return // the next ones rest on it
		}
	}
}
