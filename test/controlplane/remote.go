// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// Remote is the way to a cluster's API server from another place. It can be cut, and then requests over it
// hang, as they do in a network that drops packets; the direct way and those from elsewhere stay as they are.
type Remote struct {
	*Access
	link *link.Link
}

// Remote is the way to the cluster's API server from the place with the given name, which is made where it
// does not exist yet.
func (c *Cluster) Remote(from string) (*Remote, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("link %s to control plane %s: it is stopped", from, c.options.Name)
	}
	if remote, ok := c.remotes[from]; ok {
		return remote, nil
	}
	made, err := link.New(c.address)
	if err != nil {
		return nil, fmt.Errorf("link %s to control plane %s: %w", from, c.options.Name, err)
	}
	remote := &Remote{Access: &Access{cluster: c, url: "https://" + made.Addr().String()}, link: made}
	c.remotes[from] = remote
	return remote, nil
}

// CutOff holds back what is sent in the given directions, until Reconnect. See [link.Link.CutOff].
func (r *Remote) CutOff(directions link.Direction) { r.link.CutOff(directions) }

// Reconnect makes the way whole again. What was held back arrives now.
func (r *Remote) Reconnect() { r.link.Reconnect() }

// Reset closes the connections that there are on this way.
func (r *Remote) Reset() { r.link.Reset() }
