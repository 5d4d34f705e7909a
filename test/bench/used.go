// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/usage"
)

// used is what was used up to a moment, or between two.
type used struct {
	at time.Time
	// took is the time between two moments.
	took time.Duration
	// controller, dns and server are processor time; server is the API server with its etcd, and members the
	// simulation.
	controller, dns, server, members time.Duration
	// writes and leaseWrites are requests to the own API server.
	writes, leaseWrites float64
}

// used is what was used up to now.
func (b *bed) used(ctx context.Context) (u used, err error) {
	local := b.local()
	u.at = time.Now()
	for _, each := range []struct {
		of *time.Duration
		p  *program
	}{{&u.controller, local.controller}, {&u.dns, local.dns}} {
		if each.p != nil {
			if *each.of, err = usage.CPU(each.p.PID()); err != nil {
				return u, err
			}
		}
	}
	for _, component := range []int{local.APIServer().Process().PID(), local.Etcd().Process().PID()} {
		cpu, err := usage.CPU(component)
		if err != nil {
			return u, err
		}
		u.server += cpu
	}
	if u.members, err = usage.OwnCPU(); err != nil {
		return u, err
	}
	metrics, err := b.serverMetrics(ctx)
	u.writes, u.leaseWrites = metrics.writes(), metrics.writes(`resource="leases"`)
	return u, err
}

// during is what is used while something is done. The controller runs all the time, or is started by it.
func (b *bed) during(ctx context.Context, do func() error) (u used, err error) {
	before, err := b.used(ctx)
	if err != nil {
		return u, err
	}
	was := b.local().controller
	if err := do(); err != nil {
		return u, err
	}
	if b.local().controller != was {
		before.controller = 0
	}
	after, err := b.used(ctx)
	return used{
		at: after.at, took: after.at.Sub(before.at),
		controller: after.controller - before.controller, dns: after.dns - before.dns,
		server: after.server - before.server, members: after.members - before.members,
		writes: after.writes - before.writes, leaseWrites: after.leaseWrites - before.leaseWrites,
	}, err
}

// part is a processor time as a percentage of one core.
func (u used) part(used time.Duration) float64 { return 100 * float64(used) / float64(u.took) }

// perSecond is a number divided by the time that it took.
func (u used) perSecond(number float64) float64 { return number / u.took.Seconds() }
