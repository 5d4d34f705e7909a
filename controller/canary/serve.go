// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// size is that of a request and of an answer: more than a packet of Ethernet, and cheap enough for each second.
	size = 2 << 10
	// request begins each request, and an answer, which goes on with the id of the cluster.
	request = "clusterset-dns canary 1\n"
	// serveWithin bounds a connection, and atOnce is how many there may be.
	serveWithin = 5 * time.Second
	atOnce      = 1024
)

// padded returns a message.
func padded(text string) []byte {
	message := bytes.Repeat([]byte{'.'}, size)
	copy(message, text)
	return message
}

// asking is a request.
var asking = padded(request)

// answerOf returns the answer of a canary of a cluster.
func answerOf(cluster string) []byte { return padded(request + cluster + "\n") }

// Serve answers probes until the context ends, and then closes the listener and all connections.
func Serve(ctx context.Context, listener net.Listener, cluster string) {
	answer := answerOf(cluster)
	var connections sync.WaitGroup
	defer connections.Wait()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	tokens := make(chan struct{}, atOnce)
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case errors.Is(err, net.ErrClosed):
			klog.FromContext(ctx).Error(err, "Cannot answer probes any more", "address", listener.Addr())
			return
		case err != nil: // such as too many open files
			pause(ctx, 100*time.Millisecond)
			continue
		}
		select {
		case tokens <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		connections.Go(func() {
			defer func() { <-tokens }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			serve(conn, answer)
		})
	}
}

// serve answers one probe.
func serve(conn net.Conn, answer []byte) {
	if conn.SetDeadline(time.Now().Add(serveWithin)) != nil {
		return
	}
	asked := make([]byte, size)
	if _, err := io.ReadFull(conn, asked); err != nil || !bytes.HasPrefix(asked, []byte(request)) {
		return
	}
	if _, err := conn.Write(answer); err != nil {
		return
	}
	// The prober ends the connection, so that none waits here for late packets.
	_, _ = conn.Read(asked[:1])
}

// pause returns after some time, or once the context ends.
func pause(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
