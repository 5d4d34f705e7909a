// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"os"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// clusters are the clusters "east" and "west" that the tests of this package share.
var clusters = controlplanetest.Shared(controlplane.Options{Name: "east"}, controlplane.Options{Name: "west"})

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		runHelper()
		return
	}
	controlplanetest.Main(m)
}
