// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/clusterset-dns/clusterset-dns/cmd/coredns/command"
)

func TestMulticlusterComesBeforeKubernetes(t *testing.T) {
	all := command.Directives()
	at := slices.Index(all, "multicluster")
	if at < 0 || all[at+1] != "kubernetes" {
		t.Fatalf("multicluster is not before kubernetes in %v", all)
	}
	if !slices.Equal(slices.Delete(slices.Clone(all), at, at+1), dnsserver.Directives) {
		t.Errorf("%v are not the stock directives and one more", all)
	}
}
