// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A pipe is one direction of a connection. Data arrives in order after the delay. While the direction is cut, data
// waits, as if TCP retransmits it. If the pipe is lost, neither data nor the end of the connection arrives any more.
// The lock of the way guards all operations; a change of the way wakes the readers.
type pipe struct {
	*way
	changed  *sync.Cond
	segments []segment
	from     int // the end that writes: 0 or 1, a bit of cut
	closed   error
	lost     bool // nothing arrives any longer
	deadline time.Time
	timer    *time.Timer
}

type segment struct {
	data []byte
	at   time.Time
}

func newPipe(w *way, from int) *pipe { return &pipe{way: w, from: from, changed: sync.NewCond(&w.mu)} }

func (p *pipe) write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(p.closed, io.EOF):
		return 0, net.ErrClosed
	case p.closed != nil:
		return 0, p.closed
	case p.lost:
		return len(data), nil
	}
	p.segments = append(p.segments, segment{append([]byte(nil), data...), time.Now().Add(p.delay)})
	if p.delay > 0 {
		time.AfterFunc(p.delay, p.wake)
	} else {
		p.changed.Broadcast()
	}
	return len(data), nil
}

func (p *pipe) read(buffer []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		ended := errors.Is(p.closed, io.EOF)
		switch {
		case p.closed != nil && !ended:
			return 0, p.closed
		case len(p.segments) > 0 && !p.holds(p.from) && !time.Now().Before(p.segments[0].at):
			first := &p.segments[0]
			n := copy(buffer, first.data)
			if first.data = first.data[n:]; len(first.data) == 0 {
				p.segments = p.segments[1:]
			}
			return n, nil
		case !p.deadline.IsZero() && !time.Now().Before(p.deadline):
			return 0, os.ErrDeadlineExceeded
		case ended && len(p.segments) == 0 && !p.holds(p.from):
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}

// wake makes a reader check again. It takes the lock so that no reader is between its check and its wait.
func (p *pipe) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

// close ends the pipe: with io.EOF after the data that was written, with any other error immediately.
func (p *pipe) close(err error) {
	if p.lost && errors.Is(err, io.EOF) {
		return
	}
	if p.closed == nil || !errors.Is(err, io.EOF) {
		p.closed = err
	}
	p.changed.Broadcast()
}

// A conn is one end of a connection. It implements net.Conn.
type conn struct {
	in, out       *pipe
	local, remote address
}

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

func (c *conn) Read(buffer []byte) (int, error) { return c.in.read(buffer) }
func (c *conn) Write(data []byte) (int, error)  { return c.out.write(data) }
func (c *conn) LocalAddr() net.Addr             { return c.local }
func (c *conn) RemoteAddr() net.Addr            { return c.remote }
func (c *conn) SetReadDeadline(at time.Time) error {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if c.in.timer != nil {
		c.in.timer.Stop()
	}
	if c.in.deadline = at; !at.IsZero() {
		c.in.timer = time.AfterFunc(time.Until(at), c.in.wake)
	}
	c.in.changed.Broadcast()
	return nil
}
func (c *conn) SetWriteDeadline(time.Time) error { return nil } // writes never wait
func (c *conn) SetDeadline(at time.Time) error   { return c.SetReadDeadline(at) }

func (c *conn) Close() error {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.out.close(io.EOF)
	c.in.close(net.ErrClosed)
	delete(c.in.open, c)
	return nil
}
