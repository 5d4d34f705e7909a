// SPDX-License-Identifier: Apache-2.0

package probepod

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/forward"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

const (
	// askTimeout bounds one request.
	askTimeout = 50 * time.Second
	// reachTimeout is how long a pod may take to answer its first request.
	reachTimeout = 30 * time.Second
	// maxReply bounds the answer to one.
	maxReply = 16 << 20
)

// A Connection sends requests to a pod through a port-forward, which Close ends.
type Connection struct {
	// Nameservers are those of the pod's /etc/resolv.conf.
	Nameservers []string

	address string
	close   func()
}

// Open connects to a pod in the namespace of the controller. Its program may need
// a moment to begin.
func Open(ctx context.Context, teller progress.Teller, c *cluster.Cluster, pod string) (*Connection, error) {
	connection := &Connection{}
	teller.Timeout = min(teller.Timeout, reachTimeout)
	err := teller.Wait(ctx, func(ctx context.Context) (string, error) {
		var err error
		if connection.address, connection.close, err = forward.Open(ctx, c, c.Namespace, pod, probe.ControlPort); err == nil {
			var reply probe.Reply
			if reply, err = connection.Send(ctx, probe.Request{}); err == nil {
				connection.Nameservers = reply.Nameservers
				return "", nil
			}
			// A port-forward ends with its first error.
			connection.close()
		}
		return fmt.Sprintf("pod %s in %s does not answer through a port-forward yet (%v)", pod, c.Context, err), nil
	})
	if err != nil {
		return nil, err
	}
	return connection, nil
}

// Close ends the port-forward. On nil it does nothing.
func (c *Connection) Close() {
	if c != nil {
		c.close()
	}
}

// Send posts one request.
func (c *Connection) Send(ctx context.Context, asked probe.Request) (probe.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body, err := json.Marshal(asked)
	if err != nil {
		return probe.Reply{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address+probe.ControlPath,
		bytes.NewReader(body))
	if err != nil {
		return probe.Reply{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return probe.Reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return probe.Reply{}, err
	}
	if response.StatusCode != http.StatusOK {
		return probe.Reply{}, fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	var reply probe.Reply
	if err := json.Unmarshal(text, &reply); err != nil {
		return probe.Reply{}, err
	}
	if len(reply.Results) != len(asked.Targets) || len(reply.Answers) != len(asked.Queries) {
		return probe.Reply{}, fmt.Errorf("%d results for %d targets, %d answers to %d queries", len(reply.Results),
			len(asked.Targets), len(reply.Answers), len(asked.Queries))
	}
	return reply, nil
}
