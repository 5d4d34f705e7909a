// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// clients are the connections to relays. Members that are read through the same relay share one. They are safe for
// concurrent use.
type clients struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil for a net.Dialer

	mu   sync.Mutex
	open map[[sha256.Size]byte]*sharedClient // by credential
}

type sharedClient struct {
	*http.Client
	close func()
	users int
}

func newClients(dial func(context.Context, string, string) (net.Conn, error)) *clients {
	return &clients{dial: dial, open: map[[sha256.Size]byte]*sharedClient{}}
}

// take returns the client of a credential, which an id identifies, and a function that gives it back.
func (c *clients) take(id [sha256.Size]byte, config *rest.Config, patience time.Duration) (*http.Client, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.open[id]
	if of == nil {
		config = rest.CopyConfig(config)
		if c.dial != nil {
			config.Dial = c.dial
		}
		client, closeConnections, err := newHTTPClient(config, patience)
		if err != nil {
			return nil, nil, err
		}
		of = &sharedClient{Client: client, close: closeConnections}
		c.open[id] = of
	}
	of.users++
	return of.Client, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(c.open, id)
			of.close()
		}
	}, nil
}
