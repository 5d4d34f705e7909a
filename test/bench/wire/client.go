// SPDX-License-Identifier: Apache-2.0

// Package wire puts queries to DNS servers over sockets: one at a time, or as a load by dnsperf.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
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

// Await asks for the A records of a name again and again, an interval apart, until one has an address that is wanted. It
// ends with an error when the context does, or when broken says why there will be no answer.
func (c *Client) Await(ctx context.Context, name string, interval func() time.Duration,
	wanted func([]netip.Addr) bool, broken func() error,
) error {
	for {
		timer := time.NewTimer(interval())
		query := new(dns.Msg).SetQuestion(name, dns.TypeA)
		query.SetEdns0(bufferSize, false)
		reply, _, last := (&dns.Client{Timeout: time.Second}).ExchangeWithConn(query, c.connection)
		if last == nil && wanted(addresses(reply)) {
			return nil
		}
		if err := broken(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the answer for %s: %w", name, errors.Join(ctx.Err(), last))
		case <-timer.C:
		}
	}
}

// Every is a constant interval.
func Every(interval time.Duration) func() time.Duration {
	return func() time.Duration { return interval }
}

// addresses are those of the A records of a reply.
func addresses(reply *dns.Msg) (all []netip.Addr) {
	for _, rr := range reply.Answer {
		if a, ok := rr.(*dns.A); ok {
			if ip, ok := netip.AddrFromSlice(a.A.To4()); ok {
				all = append(all, ip)
			}
		}
	}
	return all
}
