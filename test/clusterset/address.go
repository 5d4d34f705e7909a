// SPDX-License-Identifier: Apache-2.0

package clusterset

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
	// The ports of programs are below those that the kernel gives to connections: somebody's connection would take one of these between
	// the moment in which it is found to be free and that in which it is listened on.
	firstPort = 10240
	// portRange has the port with which those of connections begin.
	portRange = "/proc/sys/net/ipv4/ip_local_port_range"
	// commonFirst is what that is as a rule.
	commonFirst = 32768
	// stride is how many ports are between those with which two processes begin that were started one after the other. It is a prime, so
	// that no two processes begin with the same one soon.
	stride = 61
)

var taken atomic.Int64

// freeAddress finds a port of 127.0.0.1 that is free for UDP and TCP, and that
// no other call of this process got.
func freeAddress() (netip.AddrPort, error) {
	count := int64(portCount())
	var err error
	for range count {
		next := int64(os.Getpid())*stride + taken.Add(1)
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+next%count))
		if err = isFree(address.String()); err == nil {
			return address, nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("find a port of 127.0.0.1 that is free for UDP and TCP, from %d to %d: %w", firstPort, firstPort+count-1, err)
}

func portCount() int {
	if text, err := os.ReadFile(portRange); err == nil {
		if fields := bytes.Fields(text); len(fields) > 0 {
			if first, err := strconv.ParseUint(string(fields[0]), 10, 16); err == nil && first >= firstPort+1000 {
				return int(first) - firstPort
			}
		}
	}
	return commonFirst - firstPort
}

func isFree(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		listener.Close()
		return err
	}
	packets.Close()
	return listener.Close()
}
