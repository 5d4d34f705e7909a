// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"time"
)

const (
	dnsPort = 53
	// dnsHeader is the size of the header of a DNS message, whose first bytes are
	// the id.
	dnsHeader, dnsID = 12, 2
	// queryTries is how often a query without an answer is sent.
	queryTries   = 3
	queryTimeout = 2 * time.Second
)

// query sends a DNS message and waits for the reply with its id.
func (c client) query(ctx context.Context, query Query) (result Answer) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, UDP, net.JoinHostPort(query.Server, strconv.Itoa(int(c.dnsPort))))
	if err != nil {
		return Answer{Failure: failureOf(err), Error: err.Error()}
	}
	defer connection.Close()
	for range queryTries {
		if err = ctx.Err(); err != nil {
			break
		}
		if result.Message, err = queryOnce(connection, query.Message); err == nil {
			return result
		}
	}
	return Answer{Failure: failureOf(err), Error: err.Error()}
}

func queryOnce(connection net.Conn, message []byte) ([]byte, error) {
	if err := connection.SetDeadline(time.Now().Add(queryTimeout)); err != nil {
		return nil, err
	}
	if _, err := connection.Write(message); err != nil {
		return nil, err
	}
	reply := make([]byte, MaxMessage)
	for {
		n, err := connection.Read(reply)
		if err != nil {
			return nil, err
		}
		// Another id is that of a late reply to a query before.
		if n >= dnsHeader && bytes.Equal(reply[:dnsID], message[:dnsID]) {
			return reply[:n], nil
		}
	}
}
