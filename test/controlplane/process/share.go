// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// Ports of programs are below Linux's ephemeral ports. Otherwise a connection could take a port after it was found
	// to be free and before its program listens, or while its program is stopped.
	firstPort, portCount = 10240, 32768 - 10240
	// stride is the difference between the first ports of two processes that are started one after the other. It is a
	// prime, so that processes rarely start with the same port.
	stride = 61
)

var taken atomic.Int64

// FreePort returns a port of 127.0.0.1 that is free for UDP and TCP, and that no other call in this process has returned.
func FreePort() (netip.AddrPort, error) {
	var err error
	for range portCount {
		next := (int64(os.Getpid())*stride + taken.Add(1)) % portCount
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+next))
		if err = isFree(address.String()); err == nil {
			return address, nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("find a port of 127.0.0.1 that is free for UDP and TCP: %w", err)
}

func isFree(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer listener.Close()
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	return packets.Close()
}

// Lock locks an existing file or directory (flock(2)). The kernel releases the lock when its holder dies. While another
// holder has the lock, Lock waits, or returns an error if wait is false.
func Lock(path string, wait bool) (unlock func(), err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), how)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// scratch is the prefix of Scratch's directories. All of them are locked, except those of processes that have ended.
const scratch = "clusterset-dns-plane-"

// Scratch creates a temporary directory that only the user can open, with a name that contains name. It removes the
// directories of ended processes, except those that it cannot open or remove, such as another user's.
func Scratch(name string) (path string, remove func() error, err error) {
	// Until the directory is locked, another process must not remove it.
	unlock, err := Lock(os.TempDir(), true)
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratch+"*"))
	for _, each := range left {
		if unlock, err := Lock(each, false); err == nil {
			_ = os.RemoveAll(each)
			unlock()
		}
	}
	if path, err = os.MkdirTemp("", scratch+name+"-"); err != nil {
		return "", nil, err
	}
	release, err := Lock(path, true)
	return path, func() error {
		defer release()
		return os.RemoveAll(path)
	}, err
}
