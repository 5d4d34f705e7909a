// SPDX-License-Identifier: Apache-2.0

// Package wire puts queries to DNS servers over sockets: one at a time, or as a load by dnsperf.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/miekg/dns"
)

// bufferSize is what a client takes over UDP, as resolvers ask for since the flag day of 2020.
const bufferSize = 1232

// Client asks one server over one socket. It is used by one goroutine at a time.
type Client struct{ connection *dns.Conn }

// Dial opens a UDP socket to the server.
func Dial(ctx context.Context, address string) (*Client, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("reach the server at %s: %w", address, err)
	}
	return &Client{&dns.Conn{Conn: connection, UDPSize: 4096}}, nil
}

// Close closes the socket.
func (c *Client) Close() error { return c.connection.Close() }

// Ask puts a question with EDNS and returns the reply. Without one in time it returns an error.
func (c *Client) Ask(name string, qtype uint16, timeout time.Duration) (*dns.Msg, error) {
	query := new(dns.Msg).SetQuestion(name, qtype)
	query.SetEdns0(bufferSize, false)
	if err := c.connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if err := c.connection.WriteMsg(query); err != nil {
		return nil, err
	}
	for {
		reply, err := c.connection.ReadMsg()
		if err != nil {
			return nil, err
		}
		if reply.Id == query.Id { // else it is late, to an earlier question
			return reply, nil
		}
	}
}

// Await asks again and again, at most once in an interval, until the reply is as wanted. It ends
// with an error when the context does, or when broken says why there will be no answer.
func (c *Client) Await(ctx context.Context, name string, qtype uint16, interval time.Duration,
	wanted func(*dns.Msg) bool, broken func() error,
) error {
	var last error
	for {
		next := time.Now().Add(interval)
		reply, err := c.Ask(name, qtype, time.Second)
		if err == nil && wanted(reply) {
			return nil
		}
		last = err
		if err := broken(); err != nil {
			return err
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for the answer for %s %s: %w", name, dns.TypeToString[qtype],
				errors.Join(ctx.Err(), last))
		case <-timer.C:
		}
	}
}

// Answered tells whether a reply has an answer.
func Answered(reply *dns.Msg) bool { return reply.Rcode == dns.RcodeSuccess && len(reply.Answer) > 0 }

// HasAddress tells whether the reply has an A record of the address.
func HasAddress(address string) func(*dns.Msg) bool {
	ip := net.ParseIP(address)
	return func(reply *dns.Msg) bool {
		for _, rr := range reply.Answer {
			if a, ok := rr.(*dns.A); ok && a.A.Equal(ip) {
				return true
			}
		}
		return false
	}
}
