// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	benchservers "github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// usage is what was used up to a moment, or between two.
type usage struct {
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
func (b *bed) used(ctx context.Context) (u usage, err error) {
	u.at = time.Now()
	var errs []error
	cpu := func(process *benchservers.Process) time.Duration {
		used, err := process.CPU()
		errs = append(errs, err)
		return used
	}
	if b.controller != nil {
		u.controller = cpu(b.controller.Process)
	}
	u.dns = cpu(b.dns.Process)
	server := b.serverCPU()
	u.server = server.used
	errs = append(errs, server.err)
	own, err := benchservers.OwnCPU()
	errs = append(errs, err)
	u.members = own
	metrics, err := b.serverMetrics(ctx)
	u.writes, u.leaseWrites = metrics.writes(), metrics.leaseWrites()
	return u, errors.Join(append(errs, err)...)
}

// cpu is processor time that was used.
type cpu struct {
	used time.Duration
	err  error
}

// serverCPU is what the own API server and its etcd have used.
func (b *bed) serverCPU() (c cpu) {
	for _, component := range []*controlplane.Component{b.plane.APIServer(), b.plane.Etcd()} {
		used, err := (&benchservers.Process{Process: component.Process()}).CPU()
		c = cpu{c.used + used, errors.Join(c.err, err)}
	}
	return c
}

// during is what is used while something is done. The controller runs all the time, or is started by it.
func (b *bed) during(ctx context.Context, do func() error) (u usage, err error) {
	before, err := b.used(ctx)
	if err != nil {
		return u, err
	}
	was := b.controller
	if err := do(); err != nil {
		return u, err
	}
	if b.controller != was {
		before.controller = 0
	}
	after, err := b.used(ctx)
	return usage{
		at: after.at, took: after.at.Sub(before.at),
		controller: after.controller - before.controller, dns: after.dns - before.dns,
		server: after.server - before.server, members: after.members - before.members,
		writes: after.writes - before.writes, leaseWrites: after.leaseWrites - before.leaseWrites,
	}, err
}

// part is a processor time as a percentage of one core.
func (u usage) part(used time.Duration) float64 { return 100 * float64(used) / float64(u.took) }

// perSecond is a number divided by the time that it took.
func (u usage) perSecond(number float64) float64 { return number / u.took.Seconds() }
