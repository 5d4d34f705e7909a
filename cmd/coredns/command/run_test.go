// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"testing"
)

// TestDirectivesWithoutPluginAreLeftOut: only the plugins of zone.go and plugins.go are compiled in here.
func TestDirectivesWithoutPluginAreLeftOut(t *testing.T) {
	got := Directives()
	for directive, want := range map[string]bool{"multicluster": true, "kubernetes": true, "forward": true, "etcd": false, "tls": false} {
		if slices.Contains(got, directive) != want {
			t.Errorf("%s is in %v: want %t", directive, got, want)
		}
	}
}
