// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts real Kubernetes control planes on loopback, for tests and demos.
//
// A cluster is an etcd, a kube-apiserver (with RBAC), the controllers of Kubernetes, and a kube-scheduler if there are
// nodes. test/kubelet can simulate the kubelets. All of them are processes of the current user, and die with the
// process that started them, however it ends. Each cluster writes into its own temporary directory.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Cluster is a running control plane. Its methods may be called from any goroutine.
type Cluster struct {
	*clusterset.Cluster
	options    Options
	remove     func() error   // removes the directory
	address    netip.AddrPort // of the API server
	components map[assets.Program]*Component
}

// StartAll starts one cluster per element of options, in parallel, and returns them in that order once their API
// servers serve the CRDs. It first builds missing programs. ctx limits only the start; a cluster runs until Stop, or
// until this process ends. If one of the clusters fails to start, all are stopped and removed, and the error quotes the
// logs.
func StartAll(ctx context.Context, options ...Options) (_ []*Cluster, err error) {
	clusters := make([]*Cluster, len(options))
	defer func() {
		if err != nil {
			err = errors.Join(err, StopAll(clusters...))
		}
	}()
	for i, options := range options {
		if clusters[i], err = newCluster(options); err != nil {
			return nil, err
		}
	}
	programs, err := assets.Ensure()
	if err != nil {
		return nil, fmt.Errorf("provide the control plane's programs: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, cluster := range clusters {
		for program, component := range cluster.components {
			component.spec.Path = programs[program]
		}
		group.Go(func() error {
			if err := cluster.start(ctx); err != nil {
				return fmt.Errorf("start control plane %s: %w", cluster.options.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return clusters, nil
}

// newCluster prepares everything that a cluster needs before its first process.
func newCluster(options Options) (_ *Cluster, err error) {
	c := &Cluster{options: options.complete()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start control plane %s: %w", options.Name, err), c.Stop())
		}
	}()
	directory, remove, err := process.Scratch(options.Name)
	if c.remove = remove; err != nil {
		return nil, err
	}
	if c.address, err = process.FreePort(); err != nil {
		return nil, err
	}
	if err := c.writeCredentials(directory); err != nil {
		return nil, err
	}
	c.components = c.newComponents()
	return c, nil
}

// start starts the components: first those that the API server needs, and after it those that need the API server.
func (c *Cluster) start(ctx context.Context) error {
	for _, program := range c.programs()[:2] {
		if err := c.components[program].run(); err != nil {
			return err
		}
	}
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	// If the CRDs exist when the controllers start, these need not discover them later.
	if !c.options.WithoutCRDs {
		if err := c.installCRDs(ctx); err != nil {
			return err
		}
	}
	for _, program := range c.programs()[2:] {
		if err := c.components[program].run(); err != nil {
			return err
		}
	}
	if err := c.createNodes(ctx); err != nil {
		return err
	}
	return c.waitWorking(ctx)
}

// Stop kills all components of the cluster, since none of their data is kept, and removes its directory. It may be
// called more than once, and on nil, but no component may be started during or after it.
func (c *Cluster) Stop() error {
	if c == nil {
		return nil
	}
	var failures []error
	for _, component := range c.components {
		failures = append(failures, component.Kill())
	}
	if c.remove != nil {
		failures = append(failures, c.remove())
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("stop control plane %s: %w", c.options.Name, err)
	}
	return nil
}

// StopAll stops the given clusters in parallel. Some may be nil.
func StopAll(clusters ...*Cluster) error {
	failures := make([]error, len(clusters))
	var group sync.WaitGroup
	for i, cluster := range clusters {
		group.Go(func() { failures[i] = cluster.Stop() })
	}
	group.Wait()
	return errors.Join(failures...)
}

// Options returns the cluster's options, with defaults. The slices in it must not be changed.
func (c *Cluster) Options() Options { return c.options }

func (c *Cluster) path(name string) string { return filepath.Join(c.Directory(), name) }

// Err returns an error with the end of the log if a component has ended unexpectedly, or else nil.
func (c *Cluster) Err() error {
	var ended []error
	for _, component := range c.components {
		ended = append(ended, component.Err())
	}
	if err := errors.Join(ended...); err != nil {
		return fmt.Errorf("control plane %s: %w", c.options.Name, err)
	}
	return nil
}

// Logs returns the ends of the logs of all components that were started.
func (c *Cluster) Logs() string {
	var tails strings.Builder
	for _, component := range c.components {
		if started := component.process.Load(); started != nil {
			fmt.Fprintf(&tails, "\nthe end of %s:\n%s", component.spec.LogFile, started.LogTail(4096))
		}
	}
	return tails.String()
}
