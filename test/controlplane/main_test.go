// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }
