// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver/contract"
)

// TestContract runs the contract test of a real kube-apiserver against the model.
func TestContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{Name: "east"})
		config := &rest.Config{Host: "https://east", Transport: server, QPS: -1}
		cluster, err := clusterset.New("east", t.TempDir(), config)
		if err == nil {
			err = cluster.Apply(t.Context(), []byte(clusterset.CRDs))
		}
		if err != nil {
			t.Fatal(err)
		}
		contract.Test(t, config)
	})
}

// TestContractRestart tests what a watch gets after a restart of the model.
func TestContractRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New(apiserver.Options{Name: "east"})
		config := &rest.Config{Host: "https://east", Transport: server, QPS: -1}
		contract.TestRestart(t, config, func() {
			server.Stop()
			server.Start()
		})
	})
}
