// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
)

// TestDirectivesWithoutPluginAreLeftOut: only the plugins of zone.go and plugins.go are compiled in here.
func TestDirectivesWithoutPluginAreLeftOut(t *testing.T) {
	left := []string{
		"auto", "autopath", "azure", "clouddns", "dns64", "dnssec", "dynupdate", "erratic", "etcd", "file", "geoip", "grpc", "grpc_server",
		"https", "https3", "k8s_external", "nomad", "on", "quic", "route53", "secondary", "sign", "siit", "tls", "trace", "view", "whoami",
	}
	want := slices.DeleteFunc(slices.Clone(dnsserver.Directives), func(directive string) bool {
		return slices.Contains(left, directive)
	})
	want = slices.Insert(want, slices.Index(want, "kubernetes"), "multicluster")
	if got := Directives(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
