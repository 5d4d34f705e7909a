// SPDX-License-Identifier: Apache-2.0

// Post-quantum key exchange takes most of the time of a handshake.
//go:debug tlsmlkem=0

package sim_test

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestMain makes garbage collections rarer: the memory of each test is garbage afterwards.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

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
