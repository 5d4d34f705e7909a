// SPDX-License-Identifier: Apache-2.0

// Command pod is the program of the pods in packet tests: a server that returns its identity, or a client.
//
//	pod serve -identity CLUSTER/POD tcp:8080 udp:8080 …
//	pod connect [-network tcp|tcp4|tcp6|udp|udp4|udp6] [-timeout DURATION] [-count N | -keep] HOST:PORT
//
// A server sends its identity as a line on each TCP connection, and again for each line that it receives. It answers
// each datagram in the same way. It listens on all addresses of the pod.
//
// connect makes connections by name, one after the other until it is killed, or N at once. With -keep it makes a single
// connection, or socket, and sends requests over it repeatedly. It prints each attempt as a line of JSON.
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
	commands := map[string]func([]string) error{"serve": serve, "connect": connect}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("the first argument is serve or connect; got %q", args)
	}
	return commands[args[0]](args[1:])
}
