// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// APIServer returns the cluster's API server. Its port is reserved while it is stopped, so connections are then refused.
func (c *Cluster) APIServer() *Component { return c.components[assets.APIServer] }

// Controllers returns the component that creates EndpointSlices and pods of Deployments, and deletes the content of namespaces.
func (c *Cluster) Controllers() *Component { return c.components[assets.Controllers] }

// Component is a program of a cluster, running or not. Its methods may be called from any goroutine.
type Component struct {
	cluster *Cluster
	spec    process.Spec
	process atomic.Pointer[process.Process] // nil before the first start
}

// Start starts the component unless it runs, with the same command, data and port. It returns once the API server is
// ready. ctx limits only this wait.
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

// Kill kills the component (SIGKILL), and returns once it has ended.
func (c *Component) Kill() error {
	if started := c.process.Load(); started != nil {
		return started.Kill()
	}
	return nil
}

// Freeze pauses the component (SIGSTOP). A frozen API server still accepts connections, but does not answer.
func (c *Component) Freeze() error { return c.process.Load().Freeze() }

// Thaw resumes a frozen component.
func (c *Component) Thaw() error { return c.process.Load().Thaw() }

// Err returns an error if the component has ended unexpectedly, or else nil.
func (c *Component) Err() error {
	if started := c.process.Load(); started != nil {
		return started.Err()
	}
	return nil
}
