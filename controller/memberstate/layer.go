// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

// A Layer has further evidence than heartbeats, of the paths to the pods of members. Its methods must not block. The
// tracker works without one.
type Layer interface {
	// Path returns the path to the pods of a member. Once it is another one, the layer calls Tracker.Reconsider.
	Path(cluster string) liveness.Path
	// Restore sets what the previous leader knew, if it is valid, before the layer learns anything else of the member.
	Restore(cluster string, was liveness.Path)
	// Witnesses returns what the paths are judged by, sorted by cluster and address.
	Witnesses() []Witness
}

// A Witness is a pod of a member that a Layer tries to reach.
type Witness struct {
	Cluster string
	Address netip.AddrPort
	// Zone is that of its node, empty if the node has none.
	Zone string
	// Fails is set while it is not reached.
	Fails bool
}

// SetLayer sets the only layer, before the tracker has members.
func (t *Tracker) SetLayer(layer Layer) { t.layer = layer }

// Reconsider judges a member again because its Path changed.
func (t *Tracker) Reconsider(cluster string) { t.update(cluster, func(time.Time, *tracked) {}) }

// Witnesses returns those of the layer.
func (t *Tracker) Witnesses() []Witness {
	if t.layer == nil {
		return nil
	}
	return t.layer.Witnesses()
}

// Path returns the path to the pods of a member: unknown, reachable or unreachable.
func (t *Tracker) Path(cluster string) string { return cmp.Or(string(t.of(cluster).Path), "unknown") }
