// SPDX-License-Identifier: Apache-2.0

// Package network connects clusters in memory: simulated clusters on virtual time, and real ones, whose connections
// test/controller directs through it.
//
// Every ordered pair of hosts has a way with its own faults. Connections are byte streams that carry real TLS and
// HTTP/2, so the code under test itself must detect half-open connections.
package network

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Direction is a direction of a way's packets, from the point of view of the host that dials. Directions can be joined with |.
type Direction int

// The directions.
const (
	ToServer Direction = 1 << iota
	FromServer
	Both = ToServer | FromServer
)

// A Network has listening hosts and ways between them. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	ways      map[[2]string]*way
	frozen    map[string]bool
}

// New returns a network.
func New() *Network {
	return &Network{
		listeners: map[string]*listener{}, ways: map[[2]string]*way{}, frozen: map[string]bool{},
	}
}

// A way carries the connections from one host to another. Its lock guards its connections.
type way struct {
	mu      sync.Mutex
	cut     Direction
	frozen  bool // whether the listening host is frozen
	refused bool
	delay   time.Duration
	open    map[*conn]bool // client ends
}

// holds reports whether data that an end wrote must wait.
func (w *way) holds(end int) bool { return w.frozen || w.cut&(Direction(1)<<end) != 0 }

func (n *Network) way(from, to string) *way {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := [2]string{from, to}
	if n.ways[key] == nil {
		n.ways[key] = &way{frozen: n.frozen[to], open: map[*conn]bool{}}
	}
	return n.ways[key]
}

// Listen returns the listener of a host, which can have one at a time.
func (n *Network) Listen(host string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[host] != nil {
		return nil, fmt.Errorf("host %s listens already", host)
	}
	l := &listener{host: host, accepted: make(chan *conn), closed: make(chan struct{})}
	l.ended = func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.listeners[host] == l {
			delete(n.listeners, host)
		}
	}
	n.listeners[host] = l
	return l, nil
}

// Dialer returns the dial function of a host.
func (n *Network) Dialer(from string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, target string) (net.Conn, error) {
		to, _, err := net.SplitHostPort(target)
		if err != nil {
			return nil, err
		}
		return n.dial(ctx, from, to)
	}
}

func (n *Network) dial(ctx context.Context, from, to string) (net.Conn, error) {
	w := n.way(from, to)
	failed := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: address(to), Err: err}
	}
	for {
		w.mu.Lock()
		cut, refused := w.cut, w.refused
		w.mu.Unlock()
		if refused {
			return nil, failed(syscall.ECONNREFUSED)
		}
		if cut == 0 {
			break
		}
		select { // refused connections: SYNs without an answer
		case <-ctx.Done():
			return nil, failed(ctx.Err())
		case <-time.After(time.Second):
		}
	}
	n.mu.Lock()
	l := n.listeners[to]
	n.mu.Unlock()
	if l == nil {
		return nil, failed(syscall.ECONNREFUSED)
	}
	there, back := newPipe(w, 0), newPipe(w, 1)
	client := &conn{in: back, out: there, local: address(from), remote: address(to)}
	server := &conn{in: there, out: back, local: address(to), remote: address(from)}
	select {
	case l.accepted <- server:
	case <-l.closed:
		return nil, failed(syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, failed(ctx.Err())
	}
	w.mu.Lock()
	w.open[client] = true
	w.mu.Unlock()
	return client, nil
}

// Cut blocks a direction: connections stay open and data waits. Nobody can connect over a way with a cut direction.
func (n *Network) Cut(from, to string, direction Direction) {
	n.change(from, to, func(w *way) { w.cut |= direction })
}

// Restore undoes Cut, Refuse and Delay; waiting data arrives. Data that Forget discarded stays lost.
func (n *Network) Restore(from, to string) {
	n.change(from, to, func(w *way) { w.cut, w.refused, w.delay = 0, false, 0 })
}

// Refuse refuses new connections and resets open ones.
func (n *Network) Refuse(from, to string) {
	n.change(from, to, func(w *way) { w.refused = true })
	n.Reset(from, to)
}

// Delay delays all data, as a slow way does, or one on which packets are lost and sent again.
func (n *Network) Delay(from, to string, delay time.Duration) {
	n.change(from, to, func(w *way) { w.delay = delay })
}

// Reset ends the connections of a way immediately for both ends.
func (n *Network) Reset(from, to string) {
	n.change(from, to, func(w *way) {
		for client := range w.open {
			client.in.close(syscall.ECONNRESET)
			client.out.close(syscall.ECONNRESET)
		}
		clear(w.open)
	})
}

// Connections returns the number of open connections of a way.
func (n *Network) Connections(from, to string) (count int) {
	n.change(from, to, func(w *way) { count = len(w.open) })
	return count
}

// change changes a way, and wakes the readers of its connections.
func (n *Network) change(from, to string, change func(*way)) {
	w := n.way(from, to)
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
	for client := range w.open {
		client.in.changed.Broadcast()
		client.out.changed.Broadcast()
	}
}

// Freeze makes a listening host hang like a stopped process: it neither reads nor writes, but connections can be made
// and stay open.
func (n *Network) Freeze(host string) { n.setFrozen(host, true) }

// Thaw undoes Freeze; waiting data arrives.
func (n *Network) Thaw(host string) { n.setFrozen(host, false) }

func (n *Network) setFrozen(host string, frozen bool) {
	n.mu.Lock()
	n.frozen[host] = frozen
	n.mu.Unlock()
	for _, from := range n.clients(host) {
		n.change(from, host, func(w *way) { w.frozen = frozen })
	}
}

// ResetAll ends the connections to a host immediately for both ends.
func (n *Network) ResetAll(host string) {
	for _, from := range n.clients(host) {
		n.Reset(from, host)
	}
}

// clients returns the hosts that have dialed a host, sorted.
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

// Forget makes the connections of a way half open: data in a direction is discarded from now on, and no end gets a
// reset, as if a firewall has forgotten the connections. New connections are not affected.
func (n *Network) Forget(from, to string, direction Direction) {
	n.change(from, to, func(w *way) {
		for client := range w.open {
			for i, p := range []*pipe{client.out, client.in} {
				if direction&(1<<i) != 0 {
					p.lost, p.segments = true, nil
				}
			}
		}
	})
}

// A listener accepts connections of other hosts.
type listener struct {
	host     string
	accepted chan *conn
	closed   chan struct{}
	once     sync.Once
	ended    func()
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed); l.ended() })
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.host) }
