// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// Remote is the way to a cluster's API server from another place: a TCP link that can be cut like a network's. What is
// sent over it then hangs, and arrives once it is whole again; nothing is refused, reset or closed. The direct way and
// those from elsewhere stay as they are.
type Remote struct {
	*Access
	listener net.Listener

	mu      sync.Mutex
	changed sync.Cond // cut or closed
	cut     network.Direction
	closed  bool
	open    map[net.Conn]bool // both ends
}

// Remote is the way to the cluster's API server from the place with the given name, which is made where it
// does not exist yet.
func (c *Cluster) Remote(from string) (*Remote, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("link %s to control plane %s: it is stopped", from, c.options.Name)
	}
	if remote, ok := c.remotes[from]; ok {
		return remote, nil
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("link %s to control plane %s: %w", from, c.options.Name, err)
	}
	r := &Remote{
		Access: &Access{cluster: c, url: "https://" + listener.Addr().String()}, listener: listener, open: map[net.Conn]bool{},
	}
	r.changed.L = &r.mu
	go r.accept()
	c.remotes[from] = r
	return r, nil
}

// CutOff holds back what is sent in the given directions from now on; bytes that are on their way may still arrive.
// While any direction is cut, new connections are accepted, as the backlog of a silent server would, and do not reach
// the server.
func (r *Remote) CutOff(directions network.Direction) { r.change(func() { r.cut |= directions }) }

// Reconnect makes the way whole. What was held back arrives now, where both ends still have their connection.
func (r *Remote) Reconnect() { r.change(func() { r.cut = 0 }) }

// Reset closes all connections that there are, at both ends, cut or not, so that both see a reset. There can be new ones.
func (r *Remote) Reset() {
	r.change(func() {
		for connection := range r.open {
			reset(connection)
		}
		clear(r.open)
	})
}

// close ends the way and its connections.
func (r *Remote) close() error {
	r.change(func() { r.closed = true })
	r.Reset()
	return r.listener.Close()
}

func (r *Remote) change(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.changed.Broadcast()
}

// passes waits until none of the directions is cut; false where the way is closed first.
func (r *Remote) passes(directions network.Direction) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed && r.cut&directions != 0 {
		r.changed.Wait()
	}
	return !r.closed
}

// reset closes a connection so that its peer sees a reset, and not a clean end.
func reset(connection net.Conn) {
	_ = connection.(*net.TCPConn).SetLinger(0)
	_ = connection.Close()
}

func (r *Remote) accept() {
	for {
		client, err := r.listener.Accept()
		switch {
		case err == nil:
			go r.forward(client)
		case errors.Is(err, net.ErrClosed):
			return
		} // else it is out of descriptors, or the client went: neither is for ever
	}
}

// forward dials the server for a client, and carries bytes both ways until both have said all.
func (r *Remote) forward(client net.Conn) {
	defer r.end(client)
	if !r.track(client, nil) || !r.passes(network.Both) {
		return
	}
	server, err := net.Dial("tcp", r.cluster.address.String())
	if err != nil {
		reset(client) // as near as an accepted connection comes to a refused one
		return
	}
	defer r.end(server)
	if !r.track(server, client) {
		reset(server)
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { r.carry(server, client, network.ToServer) })
	ways.Go(func() { r.carry(client, server, network.FromServer) })
	ways.Wait()
}

// track notes a connection for Reset, unless the other one that belongs to it was reset, or the way is closed.
func (r *Remote) track(connection, other net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := !r.closed && (other == nil || r.open[other])
	if known {
		r.open[connection] = true
	}
	return known
}

// end closes a connection and forgets it.
func (r *Remote) end(connection net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, connection)
	_ = connection.Close()
}

// carry copies what from says to to, each piece once the direction is whole. It passes on the end of it: a clean one as
// such, any other as a reset of both connections.
func (r *Remote) carry(to, from net.Conn, direction network.Direction) {
	buffer := make([]byte, 32<<10)
	for {
		count, err := from.Read(buffer)
		if errors.Is(err, net.ErrClosed) || !r.passes(direction) {
			return // it was reset, or the way is closed
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
