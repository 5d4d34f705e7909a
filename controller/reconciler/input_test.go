// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"net/netip"
	"testing"
)

// TestServicesAreOwned: endpoints of members cannot have the address of a Service of this cluster.
func TestServicesAreOwned(t *testing.T) {
	r := newTestReconciler()
	r.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	if owns := r.Source().Owns; !owns("10.96.0.10", false) || owns("10.97.0.10", false) {
		t.Error("other addresses are owned than those of Services")
	}
}
