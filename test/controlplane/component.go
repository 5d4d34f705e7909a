// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"sync"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Etcd is the cluster's store. It keeps its data while it is stopped.
func (c *Cluster) Etcd() *Component { return c.components[assets.Etcd] }

// APIServer is the cluster's API server. It keeps its port while it is stopped, so connections are refused then.
func (c *Cluster) APIServer() *Component { return c.components[assets.APIServer] }

// Controllers is what makes EndpointSlices, pods of Deployments, and deletes what is in a deleted namespace.
func (c *Cluster) Controllers() *Component { return c.components[assets.Controllers] }

// Kwok is what plays the nodes: it makes pods ready, and lets deleted ones go. It ends by itself where the API server
// does not answer within half a minute of its start.
func (c *Cluster) Kwok() *Component { return c.components[assets.Kwok] }

// Component is one program of a cluster, running or not. Its methods may be called from any goroutine.
type Component struct {
	cluster *Cluster
	spec    process.Spec
	ready   func(context.Context) error // nil: as soon as it runs

	mu      sync.Mutex
	process *process.Process
	told    bool // to end
}

// Start runs the component where it does not run: the same command, data and port. For the API server
// and etcd it returns once the API server is ready; ctx bounds that wait alone.
func (c *Component) Start(ctx context.Context) error {
	if err := c.run(); err != nil {
		return fmt.Errorf("cluster %s: %w", c.cluster.options.Name, err)
	}
	if c.ready == nil || !c.cluster.APIServer().Running() {
		return nil
	}
	if err := c.ready(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", c.cluster.options.Name, err)
	}
	return nil
}

// run starts the process.
func (c *Component) run() error {
	c.cluster.mu.Lock() // against the end of the cluster
	defer c.cluster.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cluster.stopped {
		return fmt.Errorf("start %s: the cluster is stopped", c.spec.Name)
	}
	if c.process != nil && c.process.Running() {
		return nil
	}
	started, err := process.Start(c.spec)
	if err != nil {
		return err
	}
	c.process, c.told = started, false
	return nil
}

// Kill ends the component at once (SIGKILL), and returns once it has ended.
func (c *Component) Kill() error {
	if process := c.tell(); process != nil {
		return process.Kill()
	}
	return nil
}

// Freeze stops the component's execution (SIGSTOP). A frozen API server still accepts connections, and answers nothing.
func (c *Component) Freeze() error {
	if process := c.last(); process != nil {
		return process.Freeze()
	}
	return fmt.Errorf("freeze %s: it was never started", c.spec.Name)
}

// Thaw lets a frozen component go on.
func (c *Component) Thaw() error {
	if process := c.last(); process != nil {
		return process.Thaw()
	}
	return nil
}

// Running tells whether the component was started and has not ended. A frozen one runs.
func (c *Component) Running() bool {
	process := c.last()
	return process != nil && process.Running()
}

// Err is nil unless the component has ended without being told to.
func (c *Component) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || c.told {
		return nil
	}
	return c.process.Err()
}

// last is the process of the component that was started last, nil if none was.
func (c *Component) last() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// tell notes that the process is going to end as it should, and returns it.
func (c *Component) tell() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = true
	return c.process
}
