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

// newLink is a link to a server, and a function that makes a connection over it, as both ends have it. That of the
// server is nil if it gets none in time.
func newLink(t *testing.T) (*link.Link, func(limit time.Duration) (client, server net.Conn)) {
	t.Helper()
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	l, err := link.New(listener.Addr().(*net.TCPAddr).AddrPort())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, func(limit time.Duration) (client, server net.Conn) {
		t.Helper()
		client, err := net.DialTimeout("tcp", l.Addr().String(), patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		if err := listener.SetDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
		accepted, err := listener.Accept()
		if err != nil {
			return client, nil
		}
		t.Cleanup(func() { accepted.Close() })
		return client, accepted
	}
}

// carried sends a text and tells whether it arrives, for which it waits longer if it should.
func carried(t *testing.T, from, to net.Conn, should bool) bool {
	t.Helper()
	limit := silence
	if should {
		limit = patience
	}
	if _, err := io.WriteString(from, "now"); err != nil {
		t.Fatal(err)
	}
	return received(t, to, limit)
}

func received(t *testing.T, to net.Conn, limit time.Duration) bool {
	t.Helper()
	if err := to.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, len("now"))
	_, err := io.ReadFull(to, text)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || err == nil && string(text) != "now" {
		t.Fatalf("received %q, %v", text, err)
	}
	return err == nil
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
			l, connect := newLink(t)
			client, server := connect(patience)
			l.CutOff(test.cut)
			l.CutOff(test.cut) // no change
			if to, from := carried(t, client, server, test.toServer),
				carried(t, server, client, test.fromServer); to != test.toServer || from != test.fromServer {
				t.Errorf("to the server %v, from the server %v", to, from)
			}
			if _, late := connect(silence); late != nil {
				t.Error("a new connection reaches the server over a cut link")
			}
			l.Reconnect()
			l.Reconnect()
			if !test.toServer && !received(t, server, patience) || !test.fromServer && !received(t, client, patience) {
				t.Error("what was held back does not arrive once the link is whole")
			}
		})
	}
}

func TestReset(t *testing.T) {
	l, connect := newLink(t)
	client, server := connect(patience)
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
	if _, server := connect(patience); server == nil {
		t.Error("there is no connection after a reset")
	}
}
