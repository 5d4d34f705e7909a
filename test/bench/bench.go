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
	// imports is the number of ClusterSetIP imports.
	imports int
	// names are how many of them are asked for in random order: few, many.
	names [2]int
	// headless are the numbers of endpoints of headless services: large, huge.
	headless [2]int
	// batch is how long one handler is measured in its turn.
	batch time.Duration
	// tens is the number of headless services of ten endpoints, and load1 how long a server is under load at a time.
	tens  int
	load1 time.Duration
	// perSecond limits the queries of that load, 0 being as many as the server answers.
	perSecond int
	// smallServices and largeServices are the numbers of services of the clustersets that are compared, and
	// hugeEndpoints those of endpoints of two more.
	smallServices, largeServices int
	hugeEndpoints                [2]int
	// updateTime is how long slices are updated in a round.
	updateTime time.Duration
	// settle is the interval in which memory must not shrink, and changes how many changes each server is timed for in
	// a round.
	settle  time.Duration
	changes int
	// turns is how often in a round each server is asked for a second while slices are updated.
	turns int
	// fewExports and manyExports are numbers of exported services, and withdrawn how many of them are then withdrawn.
	fewExports, manyExports, withdrawn int
	// rest is how long a controller is watched at rest.
	rest time.Duration
	// followed is how many changes are followed from one cluster to the other.
	followed int
	// members is how many members a controller has at most.
	members int
}

var (
	full = size{
		imports: 1000, names: [2]int{1000, 11_000}, headless: [2]int{1000, 10_000}, batch: 2 * time.Millisecond,
		tens: 50, load1: 3 * time.Second,
		smallServices: 50, largeServices: 5000, hugeEndpoints: [2]int{1000, 10_000},
		updateTime: 3 * time.Second, settle: 2 * time.Second, changes: 100, turns: 3,
		fewExports: 10, manyExports: 1000, withdrawn: 100, rest: 15 * time.Second, followed: 600,
		members: 200,
	}
	quick = size{
		imports: 20, names: [2]int{20, 40}, headless: [2]int{200, 400}, batch: 200 * time.Microsecond,
		tens: 5, load1: time.Second, perSecond: 2000,
		smallServices: 2, largeServices: 4, hugeEndpoints: [2]int{100, 200},
		updateTime: 200 * time.Millisecond, settle: 100 * time.Millisecond, changes: 5, turns: 1,
		fewExports: 2, manyExports: 6, withdrawn: 3, rest: 500 * time.Millisecond, followed: 10,
		members: 20,
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

// startServers starts a server of each kind, all from one source.
func (b *bench) startServers(ctx context.Context, core int, source string,
	kinds ...servers.Kind,
) (all []*servers.Server, stop func() error, err error) {
	if err := b.build(ctx); err != nil {
		return nil, nil, err
	}
	stop = func() error {
		var errs []error
		for _, server := range all {
			errs = append(errs, server.End())
		}
		return errors.Join(errs...)
	}
	for _, kind := range kinds {
		server, err := servers.Start(servers.Spec{
			Kind: kind, Program: filepath.Join(b.bin, "server"), Source: source, Dir: b.dir, Core: core,
		})
		if err != nil {
			return nil, nil, errors.Join(err, stop())
		}
		all = append(all, server)
	}
	return all, stop, nil
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
