// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// size is the size of requests and answers, in bytes: more than an Ethernet packet, and cheap enough for each second.
	size = 2 << 10
	// request begins each request, in which a nonce follows, and each answer.
	request = "clusterset-dns probe 2\n"
	// serveWithin bounds the time of a connection, and atOnce the number of connections.
	serveWithin = 2 * time.Second
	atOnce      = 1024
)

type newest struct {
	net.Listener
	open []net.Conn
	next int
}

// KeepNewest returns a listener that keeps at most that many connections open. A further connection closes the oldest one, so
// that clients that keep theirs open cannot lock out the kubelet, Prometheus or probers. Only one goroutine may call its Accept.
func KeepNewest(listener net.Listener, most int) net.Listener {
	return &newest{Listener: listener, open: make([]net.Conn, most)}
}

// Accept implements net.Listener.
func (l *newest) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if oldest := l.open[l.next]; oldest != nil {
		_ = oldest.Close() // most are closed already
	}
	l.open[l.next] = conn
	l.next = (l.next + 1) % len(l.open)
	return conn, nil
}

// padded returns a message.
func padded(text string) []byte {
	message := bytes.Repeat([]byte{'.'}, size)
	copy(message, text)
	return message
}

// asking returns a request.
func asking() []byte { return padded(request + rand.Text()) }

// answerOf returns the answer of a probe target of a cluster to a request. It proves the identity of the cluster.
func answerOf(cluster, key string, asked []byte) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write(asked)
	_, _ = mac.Write([]byte(cluster))
	return padded(request + cluster + "\n" + hex.EncodeToString(mac.Sum(nil)) + "\n")
}

// Serve answers probes until the context ends, and then closes the listener and all connections. key returns a secret that only
// the cluster and the members of its set know: the UID of its heartbeat Lease, empty while it is unknown.
func Serve(ctx context.Context, listener net.Listener, cluster string, key func() string) {
	var connections sync.WaitGroup
	defer connections.Wait()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	listener = KeepNewest(listener, atOnce)
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil: // such as too many open files
			pause(ctx, 100*time.Millisecond)
			continue
		}
		connections.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			serve(conn, cluster, key())
		})
	}
}

// serve answers one probe.
func serve(conn net.Conn, cluster, key string) {
	_ = conn.SetDeadline(time.Now().Add(serveWithin)) // if it fails, the calls below fail
	asked := make([]byte, size)
	if _, err := io.ReadFull(conn, asked); err != nil || key == "" || !bytes.HasPrefix(asked, []byte(request)) {
		return
	}
	_, _ = conn.Write(answerOf(cluster, key, asked))
	// The prober ends the connection, so that none stays in TIME_WAIT here.
	_, _ = conn.Read(asked[:1])
}

// pause returns after some time, or once the context ends.
func pause(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}
