// SPDX-License-Identifier: Apache-2.0

package network

import "slices"

// Freeze has a host that listens neither read nor write from now on, as a
// process that is stopped: connections to it are made and stay open.
func (n *Network) Freeze(host string) { n.setFrozen(host, true) }

// Thaw undoes Freeze; what waited arrives.
func (n *Network) Thaw(host string) { n.setFrozen(host, false) }

func (n *Network) setFrozen(host string, frozen bool) {
	n.mu.Lock()
	n.frozen[host] = frozen
	n.mu.Unlock()
	for _, from := range n.clients(host) {
		n.change(from, host, func(w *way) { w.frozen = frozen })
	}
}

// ResetAll ends the connections to a host for both ends at once.
func (n *Network) ResetAll(host string) {
	for _, from := range n.clients(host) {
		n.Reset(from, host)
	}
}

// clients are the hosts that ever dialed a host, sorted.
func (n *Network) clients(host string) (from []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for way := range n.ways {
		if way[1] == host {
			from = append(from, way[0])
		}
	}
	slices.Sort(from)
	return from
}

// Lose has each segment lost with a probability below 1 and sent again, as TCP
// does: it arrives late, and what was sent after it waits for it.
func (n *Network) Lose(from, to string, share float64) {
	n.change(from, to, func(w *way) { w.loss = share })
}

// Forget makes the connections of a way half open: what is sent in a direction vanishes from now on, and nobody gets a
// reset, as behind a firewall that forgot them. New connections are not concerned.
func (n *Network) Forget(from, to string, direction Direction) {
	for client := range n.connections(from, to) {
		if direction&ToServer != 0 {
			client.out.lose()
		}
		if direction&FromServer != 0 {
			client.in.lose()
		}
	}
}
