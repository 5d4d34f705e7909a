// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// bed has the clusters of a measurement: real ones and simulated ones.
type bed struct {
	options
	table
	progress io.Writer
	began    time.Time
	bin      string // the folder of the programs

	clusters []*cluster // the first one is under test
	fleet    *fleet.Fleet
	baseHeap float64 // of a controller without imports, see members
}

// local returns the cluster under test.
func (b *bed) local() *cluster { return b.clusters[0] }

// The measured programs.
const (
	controllerProgram = "clusterset-controller"
	serverProgram     = "server"
)

// A cluster is a real control plane and the programs next to it, which are nil while they do not run.
type cluster struct {
	*controlplane.Cluster
	objects         *fleet.Client
	controller, dns *clusterset.Program
}

// say reports progress.
func (b *bed) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// startClusters starts control planes.
func (b *bed) startClusters(ctx context.Context, names ...string) (err error) {
	b.say("starting %s", names)
	if b.bin, err = programs.Build(ctx, "test/bench/"+serverProgram, "cmd/"+controllerProgram, "test/bench"); err != nil {
		return err
	}
	var options []controlplane.Options
	for _, name := range names {
		options = append(options, controlplane.Options{Name: name})
	}
	planes, err := controlplane.StartAll(ctx, options...)
	if err != nil {
		return err
	}
	for _, plane := range planes {
		b.clusters = append(b.clusters, &cluster{Cluster: plane})
	}
	for _, c := range b.clusters {
		if c.objects, err = fleet.NewClient(c.Config()); err != nil {
			return err
		}
		if err := c.Install(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start starts a cluster with a CoreDNS, and the simulated clusters that are its members. It starts neither the
// controller nor Kubernetes' own controllers, which are not needed.
func (b *bed) start(ctx context.Context) error {
	if err := b.startClusters(ctx, "local"); err != nil {
		return err
	}
	local := b.local()
	if err := local.Controllers().Kill(); err != nil {
		return err
	}
	if err := local.objects.Namespaces(ctx, b.shape.Namespaces()...); err != nil {
		return err
	}
	b.say("%d members, %d services, %d endpoints", b.shape.Members, b.shape.Services, b.shape.Endpoints)
	var err error
	if b.fleet, err = fleet.Start(ctx, b.shape); err != nil {
		return err
	}
	for _, m := range b.fleet.Members {
		credential, err := m.Kubeconfig()
		if err != nil {
			return err
		}
		if err := local.Join(ctx, m.ID, credential); err != nil {
			return err
		}
	}
	if err := os.Setenv("GODEBUG", "gctrace=1"); err != nil { // for all programs started from here on, see liveHeap
		return err
	}
	return b.serve(local)
}

// serve starts the CoreDNS of a cluster, but does not wait until it is ready.
func (b *bed) serve(c *cluster) (err error) {
	c.dns, err = b.startDNS(c, "multicluster clusterset.local {\n        kubeconfig "+c.AdminKubeconfig()+"\n    }")
	return err
}

// startDNS starts a CoreDNS with this plugin, but does not wait until it is ready.
func (b *bed) startDNS(c *cluster, plugin string) (*clusterset.Program, error) {
	return c.StartCorefile(filepath.Join(b.bin, serverProgram),
		fmt.Sprintf(".:PORT {\n    bind 127.0.0.1\n    %s\n}\n", plugin))
}

// memory is the memory limit of the controller's container in the chart, in MiB.
const memory = 512

// run starts the controller of a cluster, but does not wait until it is ready.
func (b *bed) run(ctx context.Context, c *cluster) (err error) {
	if err := os.Setenv("GOMEMLIMIT", strconv.Itoa(memory<<20)); err != nil {
		return err
	}
	c.controller, err = c.StartController(ctx, filepath.Join(b.bin, controllerProgram), "--leader-elect=false")
	return err
}

// kill kills a program. It does nothing if the program does not run.
func kill(p **clusterset.Program) error {
	if *p == nil {
		return nil
	}
	defer func() { *p = nil }()
	return (*p).Kill()
}

// stop stops all programs and clusters.
func (b *bed) stop() error {
	var errs []error
	for _, c := range b.clusters {
		errs = append(errs, kill(&c.controller), kill(&c.dns))
	}
	errs = append(errs, b.fleet.Stop())
	for _, c := range b.clusters {
		errs = append(errs, c.Stop())
	}
	return errors.Join(errs...)
}

// broken returns an error if a program has ended unexpectedly.
func (b *bed) broken() error {
	var errs []error
	for _, c := range b.clusters {
		errs = append(errs, c.Err())
		for _, p := range []*clusterset.Program{c.controller, c.dns} {
			if p != nil {
				errs = append(errs, p.Err())
			}
		}
	}
	return errors.Join(errs...)
}

// patience limits each wait. No wait takes that long unless something fails.
const patience = 10 * time.Minute

// waiting matches a sample of the controller's metrics that shows services waiting for a reconcile.
var waiting = regexp.MustCompile(`(?m)^clusterset_controller_queue_depth\S* [1-9]`)

// idle waits until the controller has nothing to do and, if more is not nil, more returns true.
func (b *bed) idle(ctx context.Context, more func() (bool, error)) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		if err := b.broken(); err != nil {
			return false, err
		}
		_, metrics, err := b.local().controller.Get(ctx, "/metrics")
		if last = err; err != nil {
			return false, nil //nolint:nilerr // it may not listen yet
		}
		idle := !waiting.MatchString(metrics)
		if idle && more != nil {
			idle, last = more()
		}
		return idle && last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the controller is idle: %w", errors.Join(err, last))
	}
	return nil
}

// pause waits for a time during which no program may end.
func (b *bed) pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return b.broken()
	}
}
