// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// size is how much is measured.
type size struct {
	// imports and tens are the numbers of services with an IP, and of headless ones of ten endpoints, under load, and load
	// is how long a server is under it at a time.
	imports, tens int
	load          time.Duration
	// perSecond limits the queries of that load, 0 being as many as the server answers.
	perSecond int
	// exports is the number of exported services, and followed how many changes are followed from one cluster to the other.
	exports, followed int
	// members is how many members a controller has at most, and rest how long it is watched at rest.
	members int
	rest    time.Duration
}

var (
	full = size{
		imports: 1000, tens: 50, load: 3 * time.Second,
		exports: 1000, followed: 600, members: 200, rest: 500 * time.Millisecond,
	}
	quick = size{
		imports: 20, tens: 5, load: time.Second, perSecond: 2000,
		exports: 6, followed: 10, members: 20, rest: 20 * time.Millisecond,
	}
)

// bench is one run.
type bench struct {
	options
	size
	dir      string // scratch
	progress io.Writer
	began    time.Time
	bin      string // the folder of the programs, once they are built
}

// say tells who waits what goes on.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// build builds the programs that are measured.
func (b *bench) build(ctx context.Context) (err error) {
	if b.bin == "" {
		b.say("building the programs")
		b.bin, err = programs.Build(ctx, "test/bench/server", "test/bench/controller")
	}
	return err
}

// startServer starts a server and does not wait for it. Who calls it ends it.
func (b *bench) startServer(ctx context.Context, core int, kind servers.Kind, source string) (*servers.Server, error) {
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	return servers.Start(servers.Spec{
		Kind: kind, Program: filepath.Join(b.bin, "server"), Source: source, Dir: b.dir, Core: core,
	})
}

// usedBy is the processor time that each of the processes uses while something is done.
func usedBy[P interface{ CPU() (time.Duration, error) }](processes []P, do func() error) ([]time.Duration, error) {
	used := make([]time.Duration, len(processes))
	for i, p := range processes {
		before, err := p.CPU()
		if err != nil {
			return nil, err
		}
		used[i] = -before
	}
	if err := do(); err != nil {
		return nil, err
	}
	for i, p := range processes {
		after, err := p.CPU()
		if err != nil {
			return nil, err
		}
		used[i] += after
	}
	return used, nil
}

// pause lets time pass in which nothing is to happen.
func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// plane is a control plane of which only the API server and its store run.
type plane struct {
	*controlplane.Cluster
	writer     *objects.Writer
	kubeconfig string
}

// startPlane starts one. Who starts it stops it.
func startPlane(ctx context.Context, name string) (_ *plane, err error) {
	cluster, err := controlplane.Start(ctx, controlplane.Options{Name: name})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cluster.Stop())
		}
	}()
	// Nothing else is to write, or to use processor time.
	for _, component := range []*controlplane.Component{cluster.Controllers(), cluster.Scheduler(), cluster.Kwok()} {
		if err := component.Stop(ctx); err != nil {
			return nil, err
		}
	}
	return newPlane(cluster)
}

func newPlane(cluster *controlplane.Cluster) (*plane, error) {
	writer, err := objects.NewWriter(cluster.Config())
	if err != nil {
		return nil, err
	}
	p := &plane{Cluster: cluster, writer: writer, kubeconfig: filepath.Join(cluster.Directory(), "bench.kubeconfig")}
	return p, cluster.WriteKubeconfig(p.kubeconfig)
}

// thousands writes a number with thousands separators.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
