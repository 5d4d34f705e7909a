// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts real Kubernetes control planes on loopback, for tests and demos.
//
// A cluster is an etcd, a kube-apiserver (RBAC on), the controllers of Kubernetes, and a kube-scheduler if there are nodes,
// whose kubelets test/kubelet plays. All of them are processes of this machine, run as the current user, and die with the
// process that started them, whatever it dies of. What they write is in one temporary directory for each cluster.
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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Cluster is a running control plane. Its methods may be called from any goroutine.
type Cluster struct {
	options   Options
	directory string
	remove    func() error   // the directory
	address   netip.AddrPort // of the API server

	config     *rest.Config
	clientset  *kubernetes.Clientset
	dynamic    *dynamic.DynamicClient
	components map[assets.Program]*Component
}

// StartAll starts one cluster for each of the options, all at once, and returns them in that order once their APIs are
// served with the CRDs. Programs that are missing are built first. ctx bounds the start alone; a
// cluster runs until Stop, or until this process ends. Where one start fails, nothing is left of any, and the error quotes
// the logs.
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

// newCluster makes all that a cluster needs before its first process.
func newCluster(options Options) (_ *Cluster, err error) {
	c := &Cluster{options: options.complete()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start control plane %s: %w", options.Name, err), c.Stop())
		}
	}()
	if c.directory, c.remove, err = process.Scratch(options.Name); err != nil {
		return nil, err
	}
	if c.address, err = process.FreePort(); err != nil {
		return nil, err
	}
	if err := c.writeCredentials(); err != nil {
		return nil, err
	}
	if c.clientset, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, fmt.Errorf("make its client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		return nil, fmt.Errorf("make its dynamic client: %w", err)
	}
	c.components = c.newComponents()
	return c, nil
}

// start runs the components: those that the API server needs before it, those that need it after it.
func (c *Cluster) start(ctx context.Context) error {
	for _, program := range c.programs()[:2] {
		if err := c.components[program].run(); err != nil {
			return err
		}
	}
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	// The controllers find the CRDs when they start, rather than when they look the next time.
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

// Stop ends all components of the cluster, by force, since nothing of them is kept, and removes its
// directory. It may be called more than once, and on nil, but no component is started during or after it.
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

// StopAll stops the given clusters, all at once. Some may be nil.
func StopAll(clusters ...*Cluster) error {
	failures := make([]error, len(clusters))
	var group sync.WaitGroup
	for i, cluster := range clusters {
		group.Go(func() { failures[i] = cluster.Stop() })
	}
	group.Wait()
	return errors.Join(failures...)
}

// Name is the cluster's name.
func (c *Cluster) Name() string { return c.options.Name }

// Options are the options that the cluster runs with, defaults filled in. The slices in it belong to the cluster.
func (c *Cluster) Options() Options { return c.options }

// Directory is the cluster's temporary directory: it holds the data, the credentials and the components' logs.
func (c *Cluster) Directory() string { return c.directory }

func (c *Cluster) path(name string) string { return filepath.Join(c.Directory(), name) }

// Err is nil unless a component has ended without being told to; it then quotes its log.
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

// Logs are the ends of the logs of all components that were started.
func (c *Cluster) Logs() string {
	var tails strings.Builder
	for _, component := range c.components {
		if started := component.process.Load(); started != nil {
			fmt.Fprintf(&tails, "\nthe end of %s:\n%s", component.spec.LogFile, started.LogTail(4096))
		}
	}
	return tails.String()
}
