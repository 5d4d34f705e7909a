// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
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
		case "tcp", "tls", "http":
			listener, err := net.Listen("tcp", at)
			if err == nil && protocol == "tls" {
				listener, err = secure(listener)
			}
			if err != nil {
				return err
			}
			handle := lines
			if protocol == "http" {
				handle = pages
			}
			go func() { failed <- handle(listener, *identity) }()
		case "udp":
			packets, err := net.ListenPacket("udp", at)
			if err != nil {
				return err
			}
			go func() { failed <- datagrams(packets, *identity) }()
		default:
			return fmt.Errorf("listen to %q: it is none of tcp, tls, udp, http", argument)
		}
	}
	fmt.Println("serving")
	return <-failed
}

// secure adds TLS, with the certificate in the working directory.
func secure(listener net.Listener) (net.Listener, error) {
	certificate, err := tls.LoadX509KeyPair("tls.crt", "tls.key")
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}}), err
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

// pages answers every HTTP request with the identity.
func pages(listener net.Listener, identity string) error {
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, identity+"\n")
	}))
}
