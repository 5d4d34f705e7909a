// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
)

// serve serves all given listeners until one of them fails.
func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	identity := flags.String("identity", "", "what to answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *identity == "" || flags.NArg() == 0 {
		return errors.New("serve takes an -identity, and what to listen to, such as tcp:8080")
	}
	failed := make(chan error)
	for _, argument := range flags.Args() {
		protocol, port, _ := strings.Cut(argument, ":")
		at := net.JoinHostPort("", port)
		switch protocol {
		case "tcp":
			listener, err := net.Listen("tcp", at)
			if err != nil {
				return err
			}
			go func() { failed <- lines(listener, *identity) }()
		case "udp":
			packets, err := net.ListenPacket("udp", at)
			if err != nil {
				return err
			}
			go func() { failed <- datagrams(packets, *identity) }()
		default:
			return fmt.Errorf("listen to %q: it is neither tcp nor udp", argument)
		}
	}
	fmt.Println("serving")
	return <-failed
}

// lines serves TCP connections.
func lines(listener net.Listener, identity string) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			fmt.Fprintln(connection, identity)
			for scanner := bufio.NewScanner(connection); scanner.Scan(); {
				fmt.Fprintln(connection, identity)
			}
		}()
	}
}

// datagrams serves UDP.
func datagrams(packets net.PacketConn, identity string) error {
	buffer := make([]byte, 1500)
	for {
		_, from, err := packets.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if _, err := packets.WriteTo([]byte(identity+"\n"), from); err != nil {
			return err
		}
	}
}
