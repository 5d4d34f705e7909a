// SPDX-License-Identifier: Apache-2.0

// Package port reserves loopback ports for child processes.
package port

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Reservation holds a TCP port of 127.0.0.1. As long as it is held, the kernel gives
// the port to nobody who asks for a free one, and refuses it to whoever asks for it by
// number, except for processes of the same user that set SO_REUSEPORT: the one it is
// reserved for. It does not listen, so connections are refused until that process does.
type Reservation struct {
	socket *os.File
	addr   netip.AddrPort
}

// Reserve reserves a free port.
func Reserve() (*Reservation, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a loopback port: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "reserved port")
	addr, err := bind(fd)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("reserve a loopback port: %w", err)
	}
	return &Reservation{socket: socket, addr: addr}, nil
}

func bind(fd int) (netip.AddrPort, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return netip.AddrPort{}, err
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.As4()}); err != nil {
		return netip.AddrPort{}, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(loopback, uint16(name.(*unix.SockaddrInet4).Port)), nil
}

// Addr is the reserved address and port.
func (r *Reservation) Addr() netip.AddrPort { return r.addr }

// Release gives the port back.
func (r *Reservation) Release() error { return r.socket.Close() }
