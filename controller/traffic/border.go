// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// A Border is the clusters whose endpoints are used. The zero value is no border. It is immutable.
type Border struct {
	set    bool
	within selector.Selector
}

// ParseBorder returns the border of a text, a cluster selector; empty means none. With the error, which is of a text
// that is not valid, the border admits the local cluster alone.
func ParseBorder(text string) (Border, error) {
	if text == "" {
		return Border{}, nil
	}
	within, err := selector.Parse(text)
	if err != nil {
		return Border{set: true}, fmt.Errorf("%q is no border: %s", selector.Shorten(text), reason(err))
	}
	return Border{set: true, within: within}, nil
}

// Any reports whether there is a border.
func (b Border) Any() bool { return b.set }

// Admits reports whether the cluster is inside, as seen from the local one, which always is.
func (b Border) Admits(cluster, local selector.Cluster) bool {
	return !b.set || cluster.ID == local.ID || b.within.Selects(cluster, local)
}
