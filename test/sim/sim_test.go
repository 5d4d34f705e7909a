// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// expect waits for a moment and compares what clients see.
func expect(t *testing.T, c *sim.Cluster, want map[string]string) {
	t.Helper()
	sim.Wait(3 * time.Second)
	for service, text := range want {
		if got := c.See(service); got != text {
			t.Errorf("%s at %s: %s\ngot  %s\nwant %s", c.Name, time.Now().Format(time.TimeOnly), service, got, text)
		}
	}
}
