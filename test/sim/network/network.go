// SPDX-License-Identifier: Apache-2.0

// Package network connects clusters in memory: simulated ones on virtual time, and real ones, whose connections
// test/controller leads over it.
//
// Every pair of clusters has a way in each direction, and each way its own faults. Connections are byte streams on
// which TLS and HTTP/2 run unchanged, so that a half-open connection is found, or not, by the code under test.
package network

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Direction is a direction of the packets of a way, as seen by the one who dials. Directions can be joined with |.
type Direction int

// The directions.
const (
	ToServer Direction = 1 << iota
	FromServer
	Both = ToServer | FromServer
)

// A Network has hosts that listen and ways between them. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	ways      map[[2]string]*way
	frozen    map[string]bool
	random    *rand.Rand
}

// New returns a network.
func New() *Network {
	return &Network{
		listeners: map[string]*listener{}, ways: map[[2]string]*way{}, frozen: map[string]bool{},
		random: rand.New(rand.NewPCG(1, 0)),
	}
}

// A way is what connections from one host to another go over. Its lock is that of its connections.
type way struct {
	mu      sync.Mutex
	cut     Direction
	frozen  bool // the host that listens
	refused bool
	loss    float64
	delay   time.Duration
	jitter  time.Duration
	random  *rand.Rand
	open    map[*conn]bool // client ends
}

// delayOf is how much later the next segment arrives: each time that it is lost it is sent again, after twice as long.
func (w *way) delayOf() time.Duration {
	delay := w.delay
	if w.jitter > 0 {
		delay += time.Duration(w.random.Int64N(int64(w.jitter)))
	}
	for again := firstTimeout; w.loss > 0 && again <= lastTimeout && w.random.Float64() < w.loss; again *= 2 {
		delay += again
	}
	return delay
}

// What TCP waits before it sends a segment again: at first (RFC 6298 after a
// round trip was measured; Linux, TCP_RTO_MIN) and at most.
const (
	firstTimeout = 200 * time.Millisecond
	lastTimeout  = 2 * time.Minute
)

// holds tells whether what an end wrote waits.
func (w *way) holds(end int) bool { return w.frozen || w.cut&(Direction(1)<<end) != 0 }

func (n *Network) way(from, to string) *way {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := [2]string{from, to}
	if n.ways[key] == nil {
		n.ways[key] = &way{
			frozen: n.frozen[to], open: map[*conn]bool{}, random: rand.New(rand.NewPCG(n.random.Uint64(), 0)),
		}
	}
	return n.ways[key]
}

// Listen returns the listener of a host, which may listen once at a time.
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
		select { // SYNs that nobody answers
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

// Cut lets nothing through in a direction from now on; connections stay open
// and what is sent waits. No connection is made over a way that is cut.
func (n *Network) Cut(from, to string, direction Direction) {
	n.change(from, to, func(w *way) { w.cut |= direction })
}

// Restore undoes Cut, Refuse, Delay and Lose; what waited arrives. What a connection lost by Forget stays lost.
func (n *Network) Restore(from, to string) {
	n.change(from, to, func(w *way) { w.cut, w.refused, w.delay, w.jitter, w.loss = 0, false, 0, 0, 0 })
}

// Refuse lets nobody connect, and resets what is connected.
func (n *Network) Refuse(from, to string) {
	n.change(from, to, func(w *way) { w.refused = true })
	n.Reset(from, to)
}

// Delay has everything arrive later by a time, and by a random part of jitter.
func (n *Network) Delay(from, to string, delay, jitter time.Duration) {
	n.change(from, to, func(w *way) { w.delay, w.jitter = delay, jitter })
}

// Reset ends the connections of a way for both ends at once.
func (n *Network) Reset(from, to string) {
	n.change(from, to, func(w *way) {
		for client := range w.open {
			client.in.close(syscall.ECONNRESET)
			client.out.close(syscall.ECONNRESET)
		}
		clear(w.open)
	})
}

// Connections is how many connections of a way are open.
func (n *Network) Connections(from, to string) (count int) {
	n.change(from, to, func(w *way) { count = len(w.open) })
	return count
}

// change changes a way, and has its connections look again.
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

// A listener accepts what hosts dial.
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
