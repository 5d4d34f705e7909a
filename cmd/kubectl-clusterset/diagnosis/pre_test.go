// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"testing"
)

// newPreSet is two clusters in which nothing is installed and nothing is wrong, but what is changed.
func newPreSet(change func(east, west *Cluster)) *Set {
	set := newSet(func(east, west *Cluster) {
		for _, c := range []*Cluster{east, west} {
			c.ID, c.MCSVersion, c.State = "", "", nil
		}
		change(east, west)
	})
	set.Pre = true
	return set
}

// TestChecksBeforeTheInstallation has one fault after the other.
func TestChecksBeforeTheInstallation(t *testing.T) {
	for name, test := range map[string]struct {
		change func(east, west *Cluster)
		want   string
	}{
		"nothing": {func(_, _ *Cluster) {}, ""},
		"a loopback address": {
			func(east, _ *Cluster) { east.Config.Host = "https://127.0.0.1:6443" },
			"warning server-address east: The server of the context is https://127.0.0.1:6443, which other machines cannot reach. > Find an address that the pods of the other clusters reach, and give it to join: `kubectl clusterset join east <other contexts> --server east=<address>`.",
		},
	} {
		if got := texts(newPreSet(test.change).Check()); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}
