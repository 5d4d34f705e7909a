// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	benchservers "github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/port"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/scale/fleet"
)

// bed is one run: the cluster under test, and the simulated ones.
type bed struct {
	options
	*result
	progress io.Writer
	began    time.Time
	dir      string // scratch
	bin      string // the folder of the programs

	plane      *controlplane.Cluster
	fleet      *fleet.Fleet
	dns        *benchservers.Server
	controller *running
	credential clusterset.Credential
}

// running is a controller that runs.
type running struct {
	*benchservers.Process
	// address is where it serves metrics and health.
	address string
	started time.Time
}

// say tells who waits what goes on.
func (b *bed) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts all but the controller. Who calls it calls stop, after an error too.
func (b *bed) start(ctx context.Context) (err error) {
	b.say("starting: %d members, %d services, %d endpoints", b.shape.Members, b.shape.Services, b.shape.Endpoints)
	if b.dir, err = os.MkdirTemp("", "clusterset-dns-scale-*"); err != nil {
		return err
	}
	if b.bin, err = programs.Build(ctx, "test/bench/server", "test/bench/controller", "test/scale/plain"); err != nil {
		return err
	}
	// Without nodes neither a scheduler nor kwok runs, and nothing needs Kubernetes' own controllers.
	if b.plane, err = controlplane.Start(ctx, controlplane.Options{Name: "local", Zones: []string{}}); err != nil {
		return err
	}
	if err := b.plane.Controllers().Stop(ctx); err != nil {
		return err
	}
	if err := clusterset.Install(ctx, b.plane); err != nil {
		return err
	}
	for _, name := range b.shape.Namespaces() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := b.plane.Client().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if b.fleet, err = fleet.Start(ctx, b.shape); err != nil {
		return err
	}
	for _, m := range b.fleet.Members {
		credential, err := b.fleet.Kubeconfig(m)
		if err != nil {
			return err
		}
		if err := clusterset.Join(ctx, b.plane, m.ID, credential); err != nil {
			return err
		}
	}
	b.credential, err = clusterset.WriteCredential(ctx, b.plane, clusterset.Namespace, "clusterset-controller")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(b.dir, "kubeconfig")
	if err := b.plane.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	b.dns, err = benchservers.Start(benchservers.Spec{
		Kind: benchservers.Ours, Program: filepath.Join(b.bin, "server"), Source: kubeconfig, Dir: b.dir,
		Core: benchservers.AnyCore,
	})
	return err
}

// stop ends all.
func (b *bed) stop() error {
	errs := []error{b.kill()}
	if b.dns != nil {
		errs = append(errs, b.dns.End())
	}
	errs = append(errs, b.fleet.Stop(), b.plane.Stop())
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// run starts the controller. It does not wait for it.
func (b *bed) run() error {
	debug, err := port.Free()
	if err != nil {
		return err
	}
	started := time.Now()
	program, err := clusterset.StartController(b.plane, filepath.Join(b.bin, "controller"), b.credential,
		"--debug-address", debug.String(), "--memory-limit", strconv.FormatInt(b.memory/10*9, 10))
	if err != nil {
		return err
	}
	b.controller = &running{
		Process: &benchservers.Process{Process: program.Process, Debug: debug.String()}, address: program.Address,
		started: started,
	}
	return nil
}

// kill ends the controller at once. It does nothing if none runs.
func (b *bed) kill() error {
	if b.controller == nil {
		return nil
	}
	defer func() { b.controller = nil }()
	return b.controller.End()
}

// broken is an error if a program ended that is to run.
func (b *bed) broken() error {
	errs := []error{b.dns.Err(), b.plane.Err()}
	if b.controller != nil {
		errs = append(errs, b.controller.Err())
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
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return b.broken()
	}
}
