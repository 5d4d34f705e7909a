// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
	"github.com/clusterset-dns/clusterset-dns/test/soak/judge"
	"github.com/clusterset-dns/clusterset-dns/test/soak/workload"
)

const (
	// staleAfter is the least that the controller takes.
	staleAfter = 20 * time.Second
	// A cycle is a storm of faults, and a calm in which nothing is at fault.
	cycle = 2 * time.Minute
	storm = 50 * time.Second
	// Faults begin every faultEvery, in the mean, and last up to longest.
	faultEvery = 1500 * time.Millisecond
	longest    = 40 * time.Second
)

// A fault breaks a target, until it is healed.
type fault struct {
	kind, target string
	// ways are those that it stands in.
	ways []judge.Way
	// begin breaks the target, and returns how to heal it. A fault that heals itself returns nil.
	begin func(context.Context) (heal func(context.Context) error, err error)
}

// faults are all that can happen to the clusters, each with its share.
func faults(clusters map[string]*cluster) []fault {
	var all []fault
	for _, name := range names {
		c := clusters[name]
		all = append(all,
			c.programFault("kill the controller", c.controller, kill),
			c.programFault("stop the controller", c.controller, stop),
			c.freezeController(),
			c.programFault("kill CoreDNS", c.dns, kill),
			c.componentFault("kill the API server", c.APIServer(), true),
			c.componentFault("freeze the API server", c.APIServer(), false),
			c.componentFault("kill etcd", c.Etcd(), true),
			fault{
				kind: "cut off", target: "the ways to " + name, ways: judge.Abroad(name, names),
				begin: func(context.Context) (func(context.Context) error, error) {
					c.CutOff(link.Both)
					return func(context.Context) error { c.Reconnect(); return nil }, nil
				},
			},
		)
		for _, other := range names {
			if other == name {
				continue
			}
			member := clusters[other]
			all = append(all, c.cut("cut both ways", member, link.Both, false),
				c.cut("cut what comes", member, link.FromServer, false),
				c.cut("cut what goes, and its connections", member, link.ToServer, true))
		}
	}
	return all
}

func kill(_ context.Context, p *clusterset.Program) error { return p.Kill() }

func stop(ctx context.Context, p *clusterset.Program) error { return p.Stop(ctx, patience) }

func (c *cluster) programFault(kind string, p *program, end func(context.Context, *clusterset.Program) error) fault {
	return fault{kind: kind, target: p.name, begin: func(ctx context.Context) (func(context.Context) error, error) {
		release, err := p.keepDown(ctx, end)
		if err != nil {
			return nil, err
		}
		return func(context.Context) error { release(); return nil }, nil
	}}
}

// freezeController stops the controller's execution. It may find that it lost its Lease when it goes on.
func (c *cluster) freezeController() fault {
	return fault{
		kind: "freeze the controller", target: c.controller.name, ways: c.waysOf(),
		begin: func(context.Context) (func(context.Context) error, error) {
			running := c.controller.running()
			if running == nil {
				return nil, nil
			}
			err := running.Freeze()
			if !running.Running() {
				return nil, nil // it ended just now
			}
			return func(context.Context) error { return running.Thaw() }, err
		},
	}
}

// componentFault kills or freezes what the API needs, and nobody writes to it meanwhile.
func (c *cluster) componentFault(kind string, component *controlplane.Component, kill bool) fault {
	return fault{
		kind: kind, target: "the API of " + c.Name(), ways: c.waysOf(),
		begin: func(context.Context) (func(context.Context) error, error) {
			c.api.Lock()
			heal := func(ctx context.Context) error {
				defer c.api.Unlock()
				if kill {
					return component.Start(ctx)
				}
				return component.Thaw()
			}
			if kill {
				return heal, component.Kill()
			}
			return heal, component.Freeze()
		},
	}
}

// target names the way from c to a member.
func target(c, member *cluster) string { return "the way from " + c.Name() + " to " + member.Name() }

func (c *cluster) cut(kind string, member *cluster, directions link.Direction, reset bool) fault {
	way := c.ways[member.Name()]
	return fault{
		kind: kind, target: target(c, member), ways: []judge.Way{{From: member.Name(), To: c.Name()}},
		begin: func(context.Context) (func(context.Context) error, error) {
			way.CutOff(directions)
			if reset {
				way.Reset()
			}
			return func(context.Context) error { way.Reconnect(); return nil }, nil
		},
	}
}

// A breaker breaks what is whole.
type breaker struct {
	judge   *judge.Judge
	journal *journal
	all     []fault

	running sync.WaitGroup
	mu      sync.Mutex
	broken  []string
}

// storms breaks things in each cycle until the context ends, and returns once all is whole.
func (b *breaker) storms(ctx context.Context, random *rand.Rand) {
	defer b.running.Wait()
	for first := true; ctx.Err() == nil; first = false {
		began := time.Now()
		if end, ok := ctx.Deadline(); ok && !first && end.Before(began.Add(cycle/2)) {
			pause(ctx, cycle) // until the end
			return
		}
		b.journal.say("a storm begins")
		for time.Since(began) < storm && ctx.Err() == nil {
			chosen := b.all[random.IntN(len(b.all))]
			lasts := workload.Duration(random, longest)
			if b.take(chosen.target) {
				b.running.Go(func() { b.once(ctx, chosen, min(lasts, storm-time.Since(began)+time.Second)) })
			}
			pause(ctx, time.Duration(random.Int64N(2*int64(faultEvery))))
		}
		b.running.Wait()
		b.journal.say("all is whole, %.0f s after the storm began", time.Since(began).Seconds())
		pause(ctx, cycle-time.Since(began))
	}
}

// take tells whether nothing else is wrong with a target.
func (b *breaker) take(target string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.broken, target) {
		return false
	}
	b.broken = append(b.broken, target)
	return true
}

func (b *breaker) once(ctx context.Context, f fault, lasts time.Duration) {
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.broken = slices.DeleteFunc(b.broken, func(target string) bool { return target == f.target })
	}()
	b.journal.note("fault: %s, %s, for %s", f.kind, f.target, lasts)
	b.journal.count("fault: " + f.kind)
	b.judge.Block(f.ways...)
	whole := context.WithoutCancel(ctx)
	heal, err := f.begin(whole)
	if err != nil {
		b.journal.wrong("the soak itself: %s, %s: %v", f.kind, f.target, err)
	}
	if heal != nil {
		pause(ctx, lasts)
		if err := heal(whole); err != nil {
			b.journal.wrong("the soak itself: heal %s, %s: %v", f.kind, f.target, err)
		}
	}
	b.judge.Clear(time.Now(), f.ways...)
	b.journal.note("healed: %s, %s", f.kind, f.target)
}
