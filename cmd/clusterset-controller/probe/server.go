// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

const (
	// maxConnections is how many TCP connections the server has at once.
	maxConnections = 256
	// connectionTimeout bounds one.
	connectionTimeout = 10 * time.Second
	// controlTimeout bounds an exchange on the control port.
	controlTimeout = time.Minute
)

// Run serves until ctx ends. Identity, of at most 200 bytes, is how the server
// tells who it is.
func Run(ctx context.Context, identity string) error {
	if len(identity) > maxText {
		return fmt.Errorf("the identity has %d bytes: at most %d", len(identity), maxText)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var config net.ListenConfig
	port := ":" + strconv.Itoa(Port)
	streams, err := config.Listen(ctx, "tcp", port)
	if err != nil {
		return err
	}
	packets, err := config.ListenPacket(ctx, "udp", port)
	if err != nil {
		return errors.Join(err, streams.Close())
	}
	control, err := config.Listen(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(ControlPort))
	if err != nil {
		return errors.Join(err, streams.Close(), packets.Close())
	}
	var group sync.WaitGroup
	for _, serve := range []func() error{
		func() error { return serveStreams(streams, identity) },
		func() error { return servePackets(packets, identity) },
		func() error {
			return serveControl(ctx, control, client{port: Port, resolver: net.DefaultResolver, dnsPort: dnsPort})
		},
	} {
		group.Go(func() { cancel(serve()) })
	}
	<-ctx.Done()
	err = errors.Join(streams.Close(), packets.Close(), control.Close())
	group.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// serveStreams answers one request on each connection, until the listener is
// closed.
func serveStreams(listener net.Listener, identity string) error {
	var group sync.WaitGroup
	defer group.Wait()
	room := make(chan struct{}, maxConnections)
	for {
		room <- struct{}{}
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		group.Go(func() {
			defer func() { <-room }()
			defer connection.Close()
			// A client that sends nothing, or something else, is not answered.
			_ = serveStream(connection, identity)
		})
	}
}

func serveStream(connection net.Conn, identity string) error {
	if err := connection.SetDeadline(time.Now().Add(connectionTimeout)); err != nil {
		return err
	}
	head := make([]byte, headSize)
	if _, err := io.ReadFull(connection, head); err != nil {
		return err
	}
	size, err := requestSize(head)
	if err != nil {
		return err
	}
	request := make([]byte, size)
	copy(request, head)
	if _, err := io.ReadFull(connection, request[headSize:]); err != nil {
		return err
	}
	answer(request, identity, hostOf(connection.RemoteAddr()))
	_, err = connection.Write(request)
	return err
}

// servePackets answers requests until the socket is closed.
func servePackets(socket net.PacketConn, identity string) error {
	buffer := make([]byte, maxSize+1)
	for {
		n, client, err := socket.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if size, wrong := requestSize(buffer[:n]); err != nil || wrong != nil || size != n {
			continue
		}
		answer(buffer[:n], identity, hostOf(client))
		// A reply that cannot be sent is one that does not arrive.
		_, _ = socket.WriteTo(buffer[:n], client)
	}
}

// serveControl has the client do what it is asked to, until the listener is
// closed.
func serveControl(ctx context.Context, listener net.Listener, c client) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+ControlPath, c.handle)
	server := &http.Server{
		Handler: mux, ReadTimeout: controlTimeout, WriteTimeout: controlTimeout, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	return server.Serve(listener)
}

// hostOf is the IP address of a host, as Kubernetes writes it.
func hostOf(address net.Addr) string {
	parsed, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	return parsed.Addr().Unmap().WithZone("").String()
}
