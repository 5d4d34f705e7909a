// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// TestShares: how many endpoints are used, and the weights of SRV records, even for shares that round to nothing and
// clusters without endpoints. The SRV weight of a cluster with a share does not depend on other clusters, so slices can
// be written one by one without wrong shares in between.
func TestShares(t *testing.T) {
	for _, test := range []struct{ weights, ready, used, each string }{
		{"west=1", "east=99 west=3", "east=99 west=1", "east=512 west=168"},
		{" west = 10,north=20 ", "east=7 west=5 north=5", "east=7 north=2 west=1", "east=5120 north=2048 west=1024"},
		{"west=70, east=30", "east=10 west=7 north=5", "east=3 north=0 west=7", "east=1536 north=0 west=5120"},
		{"west=100, east=0", "east=10 west=7", "east=0 west=7", "east=0 west=7424"},
		{"west=10", "east=0 west=3", "east=0 west=3", "east=0 west=1728"},                                      // nothing else is ready
		{"west=10, north=30", "east=0 west=3 north=8", "east=0 north=8 west=3", "east=0 north=1920 west=1728"}, // their ratio, 1 to 3
		{"west=0", "east=0 west=3", "east=0 west=0", "east=0 west=0"},
		{"west=10", "east=5 west=0", "east=5 west=0", "east=10240 west=0"},
		{"west=10, north=20", "east=9 west=5 north=0", "east=9 north=0 west=1", "east=5120 north=0 west=1024"}, // 10 % without north
		{"west=50, north=50", "east=9 west=5 north=0", "east=0 north=0 west=5", "east=0 north=0 west=5120"},    // still nothing for east
		{"west=50, north=60", "east=1 west=10", "east=0 west=10", "east=0 west=2560"},
		{"gone=100", "east=9 west=5", "east=0 west=0", "east=0 west=0"},
		{"west=100", "east=3 west=1", "east=0 west=1", "east=0 west=51200"},
		{"west=70, east=30", "east=1 west=7 north=5", "east=1 north=0 west=2", "east=15360 north=0 west=5120"},
		{"west=10, north=20", "east=7 west=1 north=0", "east=7 north=0 west=1", "east=6656 north=0 west=5120"},
		{"west=1", "east=1 west=100000", "east=1 west=1", "east=51200 west=1"},
	} {
		weights, err := parseWeights(test.weights)
		if err != nil {
			t.Fatal(err)
		}
		ready := counts(t, test.ready)
		diff(t, test.weights+" of "+test.ready+": used", weights.Used(ready), counts(t, test.used))
		diff(t, test.weights+" of "+test.ready+": in SRV records", weights.each(ready), counts(t, test.each))
	}
	for _, text := range []string{
		"west", "west=", "=1", "west=-1", "west=101", "west=1,", "west=1.5", "west=1, west=2", "west=10%", strings.Repeat("a", 1<<16),
	} {
		if weights, err := parseWeights(text); err == nil {
			t.Errorf("%.50q was parsed as %v", text, weights)
		}
	}
}

// TestPositions: the order in which endpoints are used does not depend on other endpoints or on slices, so few endpoints
// change their use when the share or the pods change.
func TestPositions(t *testing.T) {
	p := &placement{imported: &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web"}}}
	positions := func(addresses ...string) []string {
		return p.inOrder(newView("east", 1, "80/TCP", strings.Join(addresses, " ")), discoveryv1.AddressTypeIPv4)
	}
	all := strings.Fields(addresses(1, 30))
	want := positions(all...)
	diff(t, "number", len(want), len(all))
	slices.Reverse(all)
	diff(t, "reversed, with some twice", positions(append(all, all[:9]...)...), want)
	want = slices.DeleteFunc(want, func(address string) bool { return address == all[7] })
	diff(t, "without one", positions(slices.Delete(all, 7, 8)...), want)
}
