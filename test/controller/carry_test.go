// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// TestResetOfARealServer: a reader sees how a real server ends a connection, and that none listens.
func TestResetOfARealServer(t *testing.T) {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer server.Close()
	b := &realBed{Network: network.New(), ways: map[[2]string]string{}}
	west, err := b.Listen("west")
	must(t, err)
	carry(t, west, func() (net.Conn, error) { return net.Dial("tcp", server.Addr().String()) })
	ends := func(what string, want error, serve func(net.Conn)) {
		client, err := net.Dial("tcp", b.way(t, "east", "west"))
		must(t, err)
		defer client.Close()
		if serve != nil {
			at, err := server.Accept()
			must(t, err)
			serve(at)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, want) {
			t.Errorf("%s: the reader sees %v, want %v", what, err, want)
		}
	}
	ends("it ends in order", io.EOF, func(at net.Conn) { must(t, at.Close()) })
	ends("it is reset", syscall.ECONNRESET, func(at net.Conn) { end(at, syscall.ECONNRESET) })
	must(t, server.Close())
	ends("nobody listens", syscall.ECONNRESET, nil)
}
