// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
)

// TestDirectivesWithoutPluginAreLeftOut: the plugins that plugins.go names are not compiled in here.
func TestDirectivesWithoutPluginAreLeftOut(t *testing.T) {
	left := []string{"azure", "clouddns", "dnssec", "etcd", "geoip", "grpc", "nomad", "route53", "sign", "trace", "view"}
	want := slices.DeleteFunc(slices.Clone(dnsserver.Directives), func(directive string) bool {
		return slices.Contains(left, directive)
	})
	want = slices.Insert(want, slices.Index(want, "kubernetes"), "multicluster")
	if got := Directives(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
