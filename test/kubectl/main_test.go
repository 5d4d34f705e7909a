// SPDX-License-Identifier: Apache-2.0

// Package kubectl breaks cluster sets, and does what kubectl clusterset check says, on three real control planes with our
// controller and our CoreDNS in each. What the commands do in a healthy set is tested in test/quickstart.
//
// The clusters are one bed for all tests, which run one after the other: the
// first joins them.
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
		{"join", testJoin},
		{"export", testExport},
		{"stale", testStale}, // by the ways of the first join
		{"check", testCheck},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, b) }) && test.name == "join" {
			return // the next ones rest on it
		}
	}
}
