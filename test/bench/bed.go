// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/port"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// bed is what is measured: real clusters, and simulated ones.
type bed struct {
	options
	figure.Table
	shape    fleet.Shape
	progress io.Writer
	began    time.Time
	bin      string // the folder of the programs

	clusters []*cluster // the first one is under test
	fleet    *fleet.Fleet
	baseHeap float64
	rested   float64 // nanoseconds of the controller in a second of rest
}

// local is the cluster under test.
func (b *bed) local() *cluster { return b.clusters[0] }

// A cluster is a real control plane and the programs that run beside it, which are nil while they do not.
type cluster struct {
	*controlplane.Cluster
	objects         *objects.Client
	kubeconfig      string
	credential      clusterset.Credential // of the controller
	controller, dns *program
}

// A program is a running one.
type program struct {
	*clusterset.Program
	debug   string // where it serves net/http/pprof
	started time.Time
}

// say tells who waits what goes on.
func (b *bed) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// startClusters starts control planes. Without nodes neither a scheduler nor kwok runs.
func (b *bed) startClusters(ctx context.Context, names ...string) (err error) {
	b.say("starting %s", names)
	if b.bin, err = programs.Build(ctx, "test/bench/server", "test/bench/controller", "test/bench/plain"); err != nil {
		return err
	}
	var options []controlplane.Options
	for _, name := range names {
		options = append(options, controlplane.Options{Name: name, Zones: []string{}})
	}
	planes, err := controlplane.StartAll(ctx, options...)
	if err != nil {
		return err
	}
	for _, plane := range planes {
		b.clusters = append(b.clusters, &cluster{Cluster: plane, kubeconfig: filepath.Join(plane.Directory(), "bench.kubeconfig")})
	}
	for _, c := range b.clusters {
		if c.objects, err = objects.New(c.Config()); err != nil {
			return err
		}
		if err := errors.Join(c.WriteKubeconfig(c.kubeconfig), clusterset.Install(ctx, c.Cluster)); err != nil {
			return err
		}
		if c.credential, err = clusterset.WriteCredential(ctx, c.Cluster, clusterset.Namespace, "clusterset-controller"); err != nil {
			return err
		}
	}
	return nil
}

// start starts a cluster with a CoreDNS, and the simulated clusters, which it reads. The controller does not run yet, nor
// do Kubernetes' own controllers, which nothing needs.
func start(ctx context.Context, b *bed) error {
	if err := b.startClusters(ctx, "local"); err != nil {
		return err
	}
	local := b.local()
	if err := local.Controllers().Stop(ctx); err != nil {
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
		if err := clusterset.Join(ctx, local.Cluster, m.ID, credential); err != nil {
			return err
		}
	}
	return b.serve(local)
}

// serve starts the CoreDNS of a cluster, and does not wait for it.
func (b *bed) serve(c *cluster) (err error) {
	c.dns, err = b.startDNS(c, "multicluster clusterset.local {\n        kubeconfig "+c.kubeconfig+"\n    }")
	return err
}

// startDNS starts a CoreDNS with a plugin, and does not wait for it.
func (b *bed) startDNS(c *cluster, plugin string) (*program, error) {
	debug, err := port.Free()
	if err != nil {
		return nil, err
	}
	started, err := clusterset.StartCorefile(c.Cluster, filepath.Join(b.bin, "server"),
		fmt.Sprintf(".:PORT {\n    bind 127.0.0.1\n    pprof %s\n    %s\n}\n", debug, plugin))
	if err != nil {
		return nil, err
	}
	return &program{started, debug.String(), time.Now()}, nil
}

// run starts the controller of a cluster, with a limit to its memory in octets, 0 being none. It does not wait for it.
func (b *bed) run(c *cluster, memory int64) error {
	debug, err := port.Free()
	if err != nil {
		return err
	}
	began := time.Now()
	started, err := clusterset.StartController(c.Cluster, filepath.Join(b.bin, "controller"), c.credential,
		"--debug-address", debug.String(), "--memory-limit", strconv.FormatInt(memory, 10))
	if err != nil {
		return err
	}
	c.controller = &program{started, debug.String(), began}
	return nil
}

// kill ends a program at once. It does nothing if none runs.
func kill(p **program) error {
	if *p == nil {
		return nil
	}
	defer func() { *p = nil }()
	return (*p).Kill()
}

// stop ends all.
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

// broken is an error if a program ended that is to run.
func (b *bed) broken() error {
	var errs []error
	for _, c := range b.clusters {
		errs = append(errs, c.Err())
		for _, p := range []*program{c.controller, c.dns} {
			if p != nil {
				errs = append(errs, p.Err())
			}
		}
	}
	return errors.Join(errs...)
}

// patience bounds each wait. Nothing waits that long on purpose.
const patience = 10 * time.Minute

// await waits until the controller's metrics are as wanted.
func (b *bed) await(ctx context.Context, what string, wanted func(samples) bool) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		if err := b.broken(); err != nil {
			return false, err
		}
		now, err := b.controllerMetrics(ctx)
		if last = err; err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return wanted(now), nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(err, last))
	}
	return nil
}

// pause lets time pass in which nothing is to be done.
func (b *bed) pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return b.broken()
	}
}

// add adds figures.
func (b *bed) add(figures ...*figure.Figure) { b.Figures = append(b.Figures, figures...) }
