// SPDX-License-Identifier: Apache-2.0

// Package link puts a TCP link into the way to a server, which can be cut like a network's: what is sent
// over a cut link hangs, and arrives once the link is whole again. Nothing is refused, reset or closed.
package link

import (
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
	pumps    sync.WaitGroup

	mu      sync.Mutex
	cut     Direction
	closed  bool
	changed chan struct{} // closed at the next change of cut and closed
	// connections are those to the server, by those of clients; nil until it is reached.
	connections map[net.Conn]net.Conn
}

// New makes a link to target, whole. It listens on a free port of 127.0.0.1 until Close.
func New(target netip.AddrPort) (*Link, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a link to %s: %w", target, err)
	}
	l := &Link{
		listener: listener, target: target, changed: make(chan struct{}), connections: map[net.Conn]net.Conn{},
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
func (l *Link) CutOff(directions Direction) { l.change(func() { l.cut |= directions }) }

// Reconnect makes the link whole. What was held back arrives now, where both ends still have their connection.
func (l *Link) Reconnect() { l.change(func() { l.cut = 0 }) }

func (l *Link) change(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
}

// wait returns once none of the directions is cut; false where the link is closed first.
func (l *Link) wait(directions Direction) bool {
	for {
		l.mu.Lock()
		cut, closed, changed := l.cut, l.closed, l.changed
		l.mu.Unlock()
		if closed || cut&directions == 0 {
			return !closed
		}
		<-changed
	}
}

// Reset closes all connections that there are, at both ends, cut or not. The link takes new ones.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for client, server := range l.connections {
		reset(client)
		if server != nil {
			reset(server)
		}
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
	err := l.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	l.change(func() { l.closed = true })
	l.Reset()
	l.pumps.Wait()
	return err
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		switch {
		case err == nil:
			l.pumps.Go(func() { l.forward(client) })
		case errors.Is(err, net.ErrClosed):
			return
		} // else it is out of descriptors, or the client went: neither is for ever
	}
}

// forward dials the server for a client, and carries bytes both ways until both have said all.
func (l *Link) forward(client net.Conn) {
	defer l.end(client)
	if !l.track(client, nil) || !l.wait(Both) {
		return
	}
	server, err := net.Dial("tcp", l.target.String())
	if err != nil {
		reset(client) // as near as an accepted connection comes to a refused one
		return
	}
	defer server.Close()
	if !l.track(client, server) {
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { l.carry(server, client, ToServer) })
	ways.Go(func() { l.carry(client, server, FromServer) })
	ways.Wait()
}

// end closes a connection and forgets it.
func (l *Link) end(client net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.connections, client)
	_ = client.Close()
}

// track notes the connections of a client for Reset. Where the link is closed or was reset, it resets them.
func (l *Link) track(client, server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.connections[client]; !l.closed && (known || server == nil) {
		l.connections[client] = server
		return true
	}
	reset(client)
	if server != nil {
		reset(server)
	}
	return false
}

// carry copies what from says to to, each piece once the direction is whole. It passes on the end of it: a clean one as
// such, any other as a reset of both connections.
func (l *Link) carry(to, from net.Conn, direction Direction) {
	buffer := make([]byte, 32<<10)
	for {
		count, err := from.Read(buffer)
		if errors.Is(err, net.ErrClosed) || !l.wait(direction) {
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
