// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver/contract"
)

// TestContract holds a real kube-apiserver to what the model of test/sim is held to.
func TestContract(t *testing.T) {
	t.Parallel()
	contract.Test(t, one(t).Config())
}
