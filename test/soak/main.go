// SPDX-License-Identifier: Apache-2.0

// Command soak runs three joined clusters for a while, in which services are changed, programs are restarted and
// everything that can break breaks, all at random, and asks every cluster's DNS server throughout. It ends with an
// error where
//
//   - an answer held an address that was never exported for the name, or one
//     that was withdrawn longer ago than a change takes;
//   - a healthy service went unanswered;
//   - the clusters do not come to the same once all is whole.
//
// Package judge decides the first two, and package truth says what the clusters must come to.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/soak/judge"
)

// bound is how long a change may take over a way on which nothing is broken: a controller that was killed leads again
// after 15 s, and a watch that failed over and over is tried again within 23 s.
const bound = 45 * time.Second

// options are those of the command line.
type options struct {
	lasts  time.Duration
	every  time.Duration
	seed   uint64
	bin    string
	folder string
}

func main() {
	o := options{}
	flag.DurationVar(&o.lasts, "for", 20*time.Minute, "how long to change and to break things")
	flag.DurationVar(&o.every, "query-every", 5*time.Millisecond, "time between two queries to one DNS server")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of all random choices")
	flag.StringVar(&o.bin, "bin", "bin", "folder of coredns and clusterset-controller")
	flag.StringVar(&o.folder, "logs", "",
		"folder that takes the log of all that happened, and the programs' logs; none are kept without it")
	flag.Parse()
	if err := process.TieToParent(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nsoak:", err)
		os.Exit(1)
	}
}

// run soaks, and leaves nothing behind but the logs.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	klog.LogToStderr(false) // client-go tells of each fault
	klog.SetOutput(io.Discard)
	log := io.Discard
	if o.folder != "" {
		file, err := os.Create(filepath.Join(o.folder, "soak.log"))
		if err != nil {
			return err
		}
		defer file.Close()
		log = file
	}
	journal := newJournal(out, log)
	journal.say("seed %d, for %s", o.seed, o.lasts)
	var planeOptions []controlplane.Options
	for _, name := range names {
		planeOptions = append(planeOptions, controlplane.Options{Name: name, Zones: []string{}})
	}
	planes, err := controlplane.StartAll(ctx, planeOptions...)
	if err != nil {
		return err
	}
	defer func() {
		if o.folder != "" {
			err = errors.Join(err, keepLogs(planes, o.folder))
		}
		err = errors.Join(err, controlplane.StopAll(planes...))
	}()
	s := &soak{options: o, journal: journal, clusters: map[string]*cluster{}}
	if err := s.prepare(ctx, planes); err != nil {
		return err
	}
	if err := s.soak(ctx); err != nil {
		return err
	}
	if count := journal.wrongCount(); count > 0 {
		return fmt.Errorf("%d things were wrong, the first of them: %s; run it again with -seed %d", count,
			journal.firstWrong(), o.seed)
	}
	return nil
}

// A soak is one run.
type soak struct {
	options
	*journal
	judge    *judge.Judge
	clusters map[string]*cluster
}

// random is a source of its own for each purpose, so that one does not disturb the other.
func (s *soak) random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, purpose)) }

func (s *soak) prepare(ctx context.Context, planes []*controlplane.Cluster) error {
	s.judge = judge.New(time.Now(), bound, names...)
	for _, plane := range planes {
		c, err := newCluster(ctx, plane, s.bin, s.judge, s.journal)
		if err != nil {
			return err
		}
		s.clusters[plane.Name()] = c
	}
	for _, c := range s.clusters {
		for _, other := range s.clusters {
			if c == other {
				continue
			}
			if err := c.join(ctx, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// soak does it all, and returns an error where it could not, or where the clusters do not come to the same.
func (s *soak) soak(ctx context.Context) error {
	running, end := context.WithCancel(ctx)
	var programs, rest sync.WaitGroup
	defer programs.Wait()
	defer rest.Wait()
	defer end()
	var writers []*writer
	for _, name := range names {
		c := s.clusters[name]
		c.watch(running)
		programs.Go(func() { c.controller.run(running) })
		programs.Go(func() { c.dns.run(running) })
	}
	for i, name := range names {
		writers = append(writers, newWriter(ctx, s.clusters[name], s.random(uint64(i))))
	}
	if err := s.converge(ctx, "from the first export"); err != nil {
		return err
	}
	for i, name := range names {
		rest.Go(func() { s.clusters[name].query(running, s.every, s.random(uint64(10+i))) })
	}

	began := time.Now()
	changing, endChanges := context.WithTimeout(ctx, s.lasts)
	defer endChanges()
	var actors sync.WaitGroup
	for i, writer := range writers {
		actors.Go(func() { writer.operate(changing, s.random(uint64(20+i))) })
	}
	breaker := &breaker{judge: s.judge, journal: s.journal, all: faults(s.clusters)}
	actors.Go(func() { breaker.storms(changing, s.random(30)) })
	actors.Wait()
	if ctx.Err() != nil {
		return errors.New("it was interrupted")
	}
	s.say("changes and faults end after %.0f s", time.Since(began).Seconds())
	for _, writer := range writers {
		writer.settle(ctx)
	}
	err := s.converge(ctx, "after all was whole")
	end()
	rest.Wait()
	for _, wrong := range s.judge.Unproven() {
		s.wrong("%s", wrong)
	}
	s.figures()
	return err
}

// converge waits until all clusters have and answer the same.
func (s *soak) converge(ctx context.Context, since string) error {
	began := time.Now()
	err := eventually(ctx, "all clusters come to the same", func(ctx context.Context) error {
		return converged(ctx, s.clusters)
	})
	if err == nil {
		s.say("all clusters have and answer the same %.1f s %s", time.Since(began).Seconds(), since)
	}
	return err
}

// figures prints what was done and what came of it.
func (s *soak) figures() {
	s.sayCounts()
	f := s.judge.Figures()
	s.say("%7d  queries judged, %d of them for services that were healthy", f.Queries, f.Owed)
	s.say("%7d  addresses in answers, %d of them withdrawn just before", f.Addresses, f.Bounded)
	s.say("%7d  queries without an answer where none was owed: the server was down or had only begun", f.Unanswered)
	s.say("%7d  wrong", s.wrongCount())
}

// keepLogs copies what the programs wrote.
func keepLogs(planes []*controlplane.Cluster, folder string) error {
	var failed []error
	for _, plane := range planes {
		logs, err := filepath.Glob(filepath.Join(plane.Directory(), "*.log"))
		failed = append(failed, err)
		for _, path := range slices.Sorted(slices.Values(logs)) {
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, plane.Name()+"-"+filepath.Base(path)), content, 0o600)
			}
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
