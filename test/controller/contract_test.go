// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver/contract"
)

// TestContract runs the contract test of the model in test/sim against a real kube-apiserver.
func TestContract(t *testing.T) {
	t.Parallel()
	contract.Test(t, one(t).Config())
}

// TestContractRestart tests what a watch gets after a restart of a real kube-apiserver.
func TestContractRestart(t *testing.T) {
	t.Parallel()
	plane := one(t)
	contract.TestRestart(t, plane.Config(), func() {
		must(t, plane.APIServer().Kill())
		must(t, plane.APIServer().Start(t.Context()))
	})
}
