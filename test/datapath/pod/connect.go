// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
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

// client is what the commands of a client have in common.
type client struct {
	network, address string
	timeout          time.Duration
	count            int
}

func newClient(name string, args []string) (*client, error) {
	c, flags := &client{}, flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&c.network, "network", "tcp", "network of the connections")
	flags.DurationVar(&c.timeout, "timeout", 2*time.Second, "how long an attempt may take")
	flags.IntVar(&c.count, "count", 1, "number of connections of connect")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if c.address = flags.Arg(0); flags.NArg() != 1 {
		return nil, fmt.Errorf("%s takes one argument, HOST:PORT", name)
	}
	return c, nil
}

// dial resolves the name and connects.
func (c *client) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if c.network == "tls" { // with the name, which the certificate must have
		return new(tls.Dialer).DialContext(ctx, "tcp4", c.address)
	}
	return new(net.Dialer).DialContext(ctx, c.network, c.address)
}

// ask reads who is at the other end. It first says something, where that end would not speak otherwise.
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

// attempt is one connection and its answer.
func (c *client) attempt() tally.Attempt {
	attempt := tally.Attempt{At: time.Now()}
	connection, err := c.dial()
	if err == nil {
		defer connection.Close()
		attempt.Who, err = c.ask(connection, c.datagrams())
	}
	attempt.Failure = reason(err)
	return attempt
}

func (c *client) datagrams() bool { return strings.HasPrefix(c.network, "udp") }

// reason is an error without the addresses, which differ from one attempt to the next.
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

func connect(args []string) error {
	c, err := newClient("connect", args)
	if err != nil {
		return err
	}
	made := make(tally.Attempts, c.count)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range made {
		group.Go(func() error {
			made[i] = c.attempt()
			return nil
		})
	}
	return errors.Join(group.Wait(), json.NewEncoder(os.Stdout).Encode(made))
}

func watch(args []string) error {
	c, err := newClient("watch", args)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	for ticker := time.NewTicker(10 * time.Millisecond); ; <-ticker.C {
		if err := encoder.Encode(c.attempt()); err != nil {
			return err
		}
	}
}

func keep(args []string) error {
	c, err := newClient("keep", args)
	if err != nil {
		return err
	}
	connection, err := c.dial()
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	scanner := bufio.NewScanner(os.Stdin)
	for speak := c.datagrams(); ; speak = true {
		attempt := tally.Attempt{At: time.Now()}
		attempt.Who, err = c.ask(connection, speak)
		attempt.Failure = reason(err)
		if err := encoder.Encode(attempt); err != nil {
			return err
		}
		if !scanner.Scan() {
			return scanner.Err()
		}
	}
}

// srv looks up SRV records as programs do.
func srv(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("srv takes a service, a protocol and a name; got %q", args)
	}
	_, records, err := net.DefaultResolver.LookupSRV(context.Background(), args[0], args[1], args[2])
	for _, record := range records {
		fmt.Printf("%s:%d\n", record.Target, record.Port)
	}
	return err
}
