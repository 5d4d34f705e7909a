// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

const (
	// patience is longer than anything takes that works.
	patience = 20 * time.Second
	// silence is how long nothing must come over a cut link.
	silence = 100 * time.Millisecond
)

// server hands out the connections that it accepts.
type server struct {
	net.Listener
	accepted chan net.Conn
}

func newServer(t *testing.T) *server {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: listener, accepted: make(chan net.Conn, 10)}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			s.accepted <- connection
		}
	}()
	return s
}

// accept is the next connection, or nil where none comes within limit.
func (s *server) accept(limit time.Duration) net.Conn {
	select {
	case connection := <-s.accepted:
		return connection
	case <-time.After(limit):
		return nil
	}
}

func newLink(t *testing.T, s *server) *link.Link {
	t.Helper()
	l, err := link.New(s.Addr().(*net.TCPAddr).AddrPort())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func dial(t *testing.T, l *link.Link) *net.TCPConn {
	t.Helper()
	connection, err := net.DialTimeout("tcp", l.Addr().String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection.(*net.TCPConn)
}

// connect is a connection over the link, as both ends have it.
func connect(t *testing.T, l *link.Link, s *server) (client, at *net.TCPConn) {
	t.Helper()
	client = dial(t, l)
	accepted := s.accept(patience)
	if accepted == nil {
		t.Fatal("the connection does not reach the server")
	}
	t.Cleanup(func() { accepted.Close() })
	return client, accepted.(*net.TCPConn)
}

func send(t *testing.T, connection net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, connection net.Conn, want string) {
	t.Helper()
	if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(connection, got); err != nil || string(got) != want {
		t.Fatalf("received %q, %v; want %q", got, err, want)
	}
}

func receiveNothing(t *testing.T, connection net.Conn) {
	t.Helper()
	if err := connection.SetReadDeadline(time.Now().Add(silence)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	if count, err := connection.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("received %q, %v over a cut link", got[:count], err)
	}
}

func TestCutOff(t *testing.T) {
	for name, test := range map[string]struct {
		cut                  link.Direction
		toServer, fromServer bool // whether it still carries
	}{
		"to the server":   {link.ToServer, false, true},
		"from the server": {link.FromServer, true, false},
		"both ways":       {link.Both, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			l := newLink(t, s)
			client, server := connect(t, l, s)
			l.CutOff(test.cut)
			l.CutOff(test.cut) // no change

			for _, way := range []struct {
				from, to net.Conn
				open     bool
			}{{client, server, test.toServer}, {server, client, test.fromServer}} {
				send(t, way.from, "now")
				if way.open {
					receive(t, way.to, "now")
				} else {
					receiveNothing(t, way.to)
				}
			}
			late := dial(t, l)
			send(t, late, "late")
			if s.accept(silence) != nil {
				t.Error("a new connection reaches the server over a cut link")
			}

			l.Reconnect()
			l.Reconnect()
			if !test.toServer {
				receive(t, server, "now")
			}
			if !test.fromServer {
				receive(t, client, "now")
			}
			accepted := s.accept(patience)
			if accepted == nil {
				t.Fatal("the new connection does not reach the server once the link is whole")
			}
			defer accepted.Close()
			receive(t, accepted, "late")
		})
	}
}

func TestReset(t *testing.T) {
	s := newServer(t)
	l := newLink(t, s)
	client, server := connect(t, l, s)
	l.CutOff(link.Both)
	l.Reset()
	for name, connection := range map[string]net.Conn{"client": client, "server": server} {
		if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := connection.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the %s's connection ends with %v", name, err)
		}
	}
	l.Reconnect()
	client, server = connect(t, l, s)
	send(t, client, "again")
	receive(t, server, "again")
}
