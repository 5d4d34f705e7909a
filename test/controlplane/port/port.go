// SPDX-License-Identifier: Apache-2.0

// Package port finds loopback ports for programs.
package port

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
)

const (
	// The ports of programs are below those that the kernel gives to connections, one of which would else take a port
	// between the moment in which it is found to be free and that in which its program listens, or while its program is
	// stopped.
	first = 10240
	// connections has the port with which those of connections begin.
	connections = "/proc/sys/net/ipv4/ip_local_port_range"
	// commonFirst is what that is as a rule.
	commonFirst = 32768
	// stride is how many ports are between those with which two processes begin that were started one after the other.
	// It is a prime, so that no two processes begin with the same one soon.
	stride = 61
)

var taken atomic.Int64

// Free finds a port of 127.0.0.1 that is free for UDP and TCP, and that no other call of this process got.
func Free() (netip.AddrPort, error) {
	count := int64(portCount())
	var err error
	for range count {
		next := int64(os.Getpid())*stride + taken.Add(1)
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(first+next%count))
		if err = isFree(address.String()); err == nil {
			return address, nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("find a port of 127.0.0.1 that is free for UDP and TCP, from %d to %d: %w",
		first, first+count-1, err)
}

func portCount() int {
	if text, err := os.ReadFile(connections); err == nil {
		if fields := bytes.Fields(text); len(fields) > 0 {
			if begin, err := strconv.ParseUint(string(fields[0]), 10, 16); err == nil && begin >= first+1000 {
				return int(begin) - first
			}
		}
	}
	return commonFirst - first
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
