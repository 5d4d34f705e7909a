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

// TestContractRestart holds it to what a watch gets after a restart.
func TestContractRestart(t *testing.T) {
	t.Parallel()
	plane := one(t)
	contract.TestRestart(t, plane.Config(), func() {
		must(t, plane.APIServer().Kill())
		must(t, plane.APIServer().Start(t.Context()))
	})
}
