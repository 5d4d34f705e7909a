// SPDX-License-Identifier: Apache-2.0

package port_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/internal/port"
)

func TestReserve(t *testing.T) {
	reserved, err := port.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	address := reserved.Addr().String()

	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection to a reserved port: %v", err)
	}
	if listener, err := net.Listen("tcp4", address); err == nil {
		listener.Close()
		t.Error("somebody else can listen on the reserved port")
	}

	// The one that it is reserved for can, and gets all connections, more than once.
	sharing := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(err, failed)
	}}
	for range 2 {
		listener, err := sharing.Listen(context.Background(), "tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			client, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			server, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			client.Close()
			server.Close()
		}
		listener.Close()
	}

	if err := reserved.Release(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatalf("a released port is not free: %v", err)
	}
	listener.Close()
}

func TestReservationsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		reserved, err := port.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		defer reserved.Release() //nolint:errcheck // nothing depends on it
		if address := reserved.Addr().String(); seen[address] {
			t.Fatalf("%s is reserved twice", address)
		} else {
			seen[address] = true
		}
	}
}
