// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Etcd is the cluster's store. It keeps its data while it is stopped.
func (c *Cluster) Etcd() *Component { return c.components[assets.Etcd] }

// APIServer is the cluster's API server. It keeps its port while it is stopped, so connections are refused then.
func (c *Cluster) APIServer() *Component { return c.components[assets.APIServer] }

// Controllers is what makes EndpointSlices, pods of Deployments, and deletes what is in a deleted namespace.
func (c *Cluster) Controllers() *Component { return c.components[assets.Controllers] }

// Component is one program of a cluster, running or not. Its methods may be called from any goroutine.
type Component struct {
	cluster *Cluster
	spec    process.Spec
	process atomic.Pointer[process.Process] // nil until it was started
}

// Start runs the component where it does not run: the same command, data and port. It returns once the API server is
// ready; ctx bounds that wait alone.
func (c *Component) Start(ctx context.Context) error {
	if err := c.run(); err != nil {
		return fmt.Errorf("cluster %s: %w", c.cluster.options.Name, err)
	}
	return c.cluster.waitReady(ctx)
}

// run starts the process.
func (c *Component) run() error {
	if running := c.process.Load(); running != nil && running.Running() {
		return nil
	}
	started, err := process.Start(c.spec)
	if err == nil {
		c.process.Store(started)
	}
	return err
}

// Kill ends the component at once (SIGKILL), and returns once it has ended.
func (c *Component) Kill() error {
	if started := c.process.Load(); started != nil {
		return started.Kill()
	}
	return nil
}

// Freeze stops the component's execution (SIGSTOP). A frozen API server still accepts connections, and answers nothing.
func (c *Component) Freeze() error { return c.process.Load().Freeze() }

// Thaw lets a frozen component go on.
func (c *Component) Thaw() error { return c.process.Load().Thaw() }

// Err is nil unless the component has ended without being told to.
func (c *Component) Err() error {
	if started := c.process.Load(); started != nil {
		return started.Err()
	}
	return nil
}
