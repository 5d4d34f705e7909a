// SPDX-License-Identifier: Apache-2.0

// Package link puts a TCP link into the way to a server, which can be cut like a network's: what is sent
// over a cut link hangs, and arrives once the link is whole again. Nothing is refused, reset or closed.
package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// Direction is one of the two ways that bytes take, or both.
type Direction uint8

// The directions.
const (
	ToServer Direction = 1 << iota
	FromServer
	Both = ToServer | FromServer
)

// Link forwards the connections that it accepts to a server. Its methods may be called from any goroutine.
type Link struct {
	listener net.Listener
	target   netip.AddrPort
	ctx      context.Context //nolint:containedctx // the life of the link, which Close ends
	close    context.CancelFunc
	pumps    sync.WaitGroup

	mu          sync.Mutex
	gates       map[Direction]*gate // of ToServer and FromServer
	connections map[net.Conn]struct{}
}

// New makes a link to target, whole. It listens on a free port of 127.0.0.1 until Close.
func New(target netip.AddrPort) (*Link, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a link to %s: %w", target, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Link{
		listener:    listener,
		target:      target,
		ctx:         ctx,
		close:       cancel,
		gates:       map[Direction]*gate{ToServer: newGate(), FromServer: newGate()},
		connections: map[net.Conn]struct{}{},
	}
	l.pumps.Go(l.accept)
	return l, nil
}

// Addr is where the link accepts connections.
func (l *Link) Addr() netip.AddrPort {
	return l.listener.Addr().(*net.TCPAddr).AddrPort()
}

// CutOff holds back what is sent in the given directions from now on; bytes that are on their way may still arrive.
// While any direction is cut, new connections are accepted, as the backlog of a silent server would, and do not reach
// the server.
func (l *Link) CutOff(directions Direction) {
	for direction, gate := range l.gates {
		if directions&direction != 0 {
			gate.shut()
		}
	}
}

// Reconnect makes the link whole. What was held back arrives now, where both ends still have their connection.
func (l *Link) Reconnect() {
	for _, gate := range l.gates {
		gate.open()
	}
}

// Reset closes all connections that there are, at both ends, cut or not. The link takes new ones.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for connection := range l.connections {
		reset(connection)
	}
	clear(l.connections)
}

// reset closes a connection so that its peer sees a reset, and not a clean end.
func reset(connection net.Conn) {
	_ = connection.(*net.TCPConn).SetLinger(0)
	_ = connection.Close()
}

// Close ends the link and its connections, and returns once nothing of it runs.
func (l *Link) Close() error {
	l.close()
	err := l.listener.Close()
	l.Reset()
	l.pumps.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close the link to %s: %w", l.target, err)
	}
	return nil
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			if l.ctx.Err() != nil {
				return
			}
			continue // out of descriptors, or the client went: neither is for ever
		}
		l.pumps.Go(func() { l.forward(client) })
	}
}

// track notes the connections of a client and, once there is one, of its server, for Reset. Where the link is closed
// or reset already, it resets the last of them.
func (l *Link) track(client, server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, current := client, true
	if server != nil {
		last = server
		_, current = l.connections[client]
	}
	if l.ctx.Err() != nil || !current {
		reset(last)
		return false
	}
	l.connections[last] = struct{}{}
	return true
}

// end closes a connection and forgets it.
func (l *Link) end(connection net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.connections, connection)
	_ = connection.Close()
}

// forward dials the server for a client, and carries bytes both ways until both have said all.
func (l *Link) forward(client net.Conn) {
	if !l.track(client, nil) {
		return
	}
	defer l.end(client)
	for _, gate := range l.gates {
		if !gate.wait(l.ctx) {
			return
		}
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(l.ctx, "tcp", l.target.String())
	if err != nil {
		reset(client) // as near as an accepted connection comes to a refused one
		return
	}
	if !l.track(client, server) {
		return
	}
	defer l.end(server)

	var ways sync.WaitGroup
	ways.Go(func() { l.carry(server, client, l.gates[ToServer]) })
	ways.Go(func() { l.carry(client, server, l.gates[FromServer]) })
	ways.Wait()
}

// carry copies what from says to to, each piece once the gate is open. It passes on the end of it: a clean one as
// such, any other as a reset of both connections.
func (l *Link) carry(to, from net.Conn, gate *gate) {
	buffer := make([]byte, 32<<10)
	for {
		count, err := from.Read(buffer)
		if errors.Is(err, net.ErrClosed) || !gate.wait(l.ctx) {
			return // it was reset, or the link is closed
		}
		if _, writeErr := to.Write(buffer[:count]); writeErr != nil {
			err = writeErr
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = to.(*net.TCPConn).CloseWrite()
			return
		default:
			reset(to)
			reset(from)
			return
		}
	}
}

// gate is open or shut.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
		g.opened = make(chan struct{})
	default:
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// wait returns once the gate is open; false where ctx ends first.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
