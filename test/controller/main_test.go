// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var shared = controlplanetest.Shared(
	controlplane.Options{Name: "east"},
	controlplane.Options{Name: "west"},
)
