// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// client makes connections.
type client struct {
	network, address string
	timeout          time.Duration
}

// dial resolves the name and connects.
func (c *client) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	return new(net.Dialer).DialContext(ctx, c.network, c.address)
}

// ask reads the identity of the other end. With speak it first sends a line, for servers that wait for data.
func (c *client) ask(connection net.Conn, speak bool) (string, error) {
	if err := connection.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return "", err
	}
	if speak {
		if _, err := fmt.Fprintln(connection, "who is there?"); err != nil {
			return "", err
		}
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	return strings.TrimSpace(line), err
}

// once makes a connection, and returns its answer.
func (c *client) once() (string, error) {
	connection, err := c.dial()
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return c.ask(connection, c.datagrams())
}

func (c *client) datagrams() bool { return strings.HasPrefix(c.network, "udp") }

// reason returns the text of an error without addresses, which differ between attempts.
func reason(err error) string {
	var notFound *net.DNSError
	var errno syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &notFound) && notFound.IsNotFound:
		return "no such host"
	case errors.As(err, &notFound):
		return "name not resolved: " + notFound.Err
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &errno):
		return errno.Error()
	default:
		return err.Error()
	}
}

// tell prints an attempt with the result of answer, in a single write.
func tell(answer func() (string, error)) (err error) {
	attempt := tally.Attempt{At: time.Now()}
	attempt.Who, err = answer()
	attempt.Failure = reason(err)
	return json.NewEncoder(os.Stdout).Encode(attempt)
}

func connect(args []string) error {
	c, flags := &client{}, flag.NewFlagSet("connect", flag.ContinueOnError)
	flags.StringVar(&c.network, "network", "tcp", "network of the connections")
	flags.DurationVar(&c.timeout, "timeout", 2*time.Second, "how long an attempt may take")
	count := flags.Int("count", 0, "number of connections; by default they are made until the program is killed")
	keep := flags.Bool("keep", false, "ask over one connection, or socket, again and again")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if c.address = flags.Arg(0); flags.NArg() != 1 {
		return errors.New("connect takes one argument, HOST:PORT")
	}
	if *count > 0 {
		var group errgroup.Group
		group.SetLimit(16)
		for range *count {
			group.Go(func() error { return tell(c.once) })
		}
		return group.Wait()
	}
	answer := c.once
	if *keep {
		connection, err := c.dial()
		if err != nil {
			return err
		}
		speak := c.datagrams()
		answer = func() (string, error) {
			defer func() { speak = true }()
			return c.ask(connection, speak)
		}
	}
	for ticker := time.NewTicker(10 * time.Millisecond); ; <-ticker.C {
		if err := tell(answer); err != nil {
			return err
		}
	}
}
