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
	"net/netip"
	"sync"
	"time"
)

const (
	// size is the size of requests and answers, in bytes: more than an Ethernet packet, and cheap enough for each second.
	size = 2 << 10
	// request begins each request, in which a nonce follows, and each answer.
	request = "clusterset-dns probe 2\n"
	nonce   = 16
	// serveWithin bounds the time of a connection, atOnce the number of connections, and perSource the number from one address:
	// clusters may share the address of a gateway.
	serveWithin = 2 * time.Second
	atOnce      = 1024
	perSource   = 64
)

// padded returns a message.
func padded(text string) []byte {
	message := bytes.Repeat([]byte{'.'}, size)
	copy(message, text)
	return message
}

// asking returns a request.
func asking() []byte {
	number := make([]byte, nonce)
	_, _ = rand.Read(number) // it never fails
	return padded(request + string(number))
}

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
	taken := slots{of: map[netip.Prefix]int{}}
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
		source := sourceOf(conn)
		if !taken.take(source) {
			_ = conn.Close()
			continue
		}
		connections.Go(func() {
			defer taken.give(source)
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			serve(conn, cluster, key())
		})
	}
}

// slots are the connections at once, by their source.
type slots struct {
	mu  sync.Mutex
	all int
	of  map[netip.Prefix]int
}

// take reports whether a source may have another connection, and counts it.
func (s *slots) take(source netip.Prefix) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= atOnce || s.of[source] >= perSource {
		return false
	}
	s.all++
	s.of[source]++
	return true
}

func (s *slots) give(source netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[source]--; s.of[source] == 0 {
		delete(s.of, source)
	}
}

// sourceOf returns the address of the other end, or its /64 for IPv6.
func sourceOf(conn net.Conn) netip.Prefix {
	address, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	ip, bits := address.Addr().Unmap(), 32
	if ip.Is6() {
		bits = 64
	}
	source, _ := ip.Prefix(bits)
	return source
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
