// SPDX-License-Identifier: Apache-2.0

// Command pod is what runs in the pods of the packet bed: a server that says who it is, or a client that asks.
//
//	pod serve -identity CLUSTER/POD tcp:8080 tls:8443 udp:8080 http:80 …
//	pod connect [-network tcp|tcp4|tcp6|tls|udp|udp4|udp6] [-timeout DURATION] [-count N | -keep] HOST:PORT
//	pod srv SERVICE PROTOCOL NAME
//
// A server answers each TCP connection with a line that is its identity, and again to each line that it gets; and each
// datagram, and each HTTP request, likewise. It listens on all addresses of the pod.
//
// connect makes connections, each by name, one after the other until it is killed, or so many at once. With -keep it makes
// one connection, or one socket, and asks over it again and again. It prints each attempt as a line of JSON. srv prints the
// targets of SRV records, one each line.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	commands := map[string]func([]string) error{"serve": serve, "connect": connect, "srv": srv}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("the first argument is one of serve, connect, srv; got %q", args)
	}
	return commands[args[0]](args[1:])
}
