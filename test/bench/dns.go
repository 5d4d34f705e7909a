// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/bench/usage"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
)

const queriesText = `
Whole servers over UDP on loopback, under as much load as dnsperf generates, with one core for each:
70 % ClusterSetIP A, 10 % AAAA NODATA, 10 % NXDOMAIN, 5 % headless A of 10 endpoints, 5 % SRV. The floor
is a CoreDNS server that looks up prebuilt records and writes them, the limit for any plugin. The
figures are those of the round with the median ratio.`

// Cores of the server and of what asks it.
const (
	serverCore = 1
	clientCore = 0
)

// queries measures whole servers under a mixed load, with what a controller imported.
func queries(ctx context.Context, b *bed) error {
	if err := start(ctx, b); err != nil {
		return err
	}
	if err := imports(ctx, b); err != nil {
		return err
	}
	local := b.local()
	b.Figures = nil // of the import
	if err := errors.Join(kill(&local.controller), kill(&local.dns), os.Setenv("GOMAXPROCS", "1")); err != nil {
		return err // each server has one core
	}
	if err := b.serve(local); err != nil {
		return err
	}
	if err := ready(ctx, local.dns); err != nil { // the floor asks it
		return err
	}
	file := filepath.Join(local.Directory(), "queries")
	if err := os.WriteFile(file, []byte(mixed(b.shape.Services)), 0o600); err != nil {
		return err
	}
	floor, err := b.startDNS(local, "floor "+local.dns.Address+" "+file)
	if err := errors.Join(err, os.Unsetenv("GOMAXPROCS")); err != nil {
		return err
	}
	defer func() { _ = floor.Kill() }()
	if err := ready(ctx, floor); err != nil {
		return err
	}
	servers := []*program{local.dns, floor}
	var rounds [][2]float64 // of the servers
	for round := range b.rounds + 1 {
		b.say("round %d of %d", round, b.rounds)
		var cost [2]float64
		for turn := range servers {
			which := (turn + round) % len(servers)
			if cost[which], err = b.load(ctx, servers[which], file); err != nil {
				return err
			}
		}
		if round > 0 { // the first one warms up
			rounds = append(rounds, cost)
		}
	}
	slices.SortFunc(rounds, func(a, b [2]float64) int { return cmp.Compare(a[0]/a[1], b[0]/b[1]) })
	median := rounds[len(rounds)/2]
	f := &figure.Figure{What: "DNS, CPU per query", Value: median[0], Measured: figure.Time(median[0])}
	f.Compare(median[1], figure.Time, figure.Ratio(1.03))
	b.add(f)
	return nil
}

// ready returns when a server answers, and moves it to its core.
func ready(ctx context.Context, server *program) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := wire.Dial(ctx, server.Address)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Await(ctx, fleet.Name(0), wire.Every(5*time.Millisecond),
		func(addresses []netip.Addr) bool { return len(addresses) > 0 }, server.Err); err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, "taskset", "--all-tasks", "--cpu-list", "--pid", strconv.Itoa(serverCore),
		strconv.Itoa(server.PID())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("taskset of util-linux: %w: %s", err, output)
	}
	return nil
}

// load puts the load on a server and returns the nanoseconds of processor time per query.
func (b *bed) load(ctx context.Context, server *program, file string) (float64, error) {
	before, err := usage.CPU(server.PID())
	if err != nil {
		return 0, err
	}
	completed, err := wire.Load{Address: server.Address, Queries: file, Duration: b.size.load, Core: clientCore}.Run(ctx)
	if err == nil && completed == 0 {
		err = fmt.Errorf("the server at %s answered no query", server.Address)
	}
	if err != nil {
		return 0, err
	}
	after, err := usage.CPU(server.PID())
	return float64(after-before) / float64(completed), err
}

// mixed is a file of queries for dnsperf, in an order that is the same always.
func mixed(services int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for i := range 10_000 {
		headless := random.IntN(services/2) * 2
		name, ten, qtype := fleet.Name(random.IntN(services/2)*2+1), fleet.Name(headless%100), "A"
		switch draw := random.IntN(100); {
		case draw < 70:
		case draw < 80:
			qtype = "AAAA"
		case draw < 90:
			name = fmt.Sprintf("none-%d.%s", i, name)
		case draw < 95:
			name = ten
		case i%2 == 0:
			name, qtype = "_sql._tcp."+ten, "SRV"
		default:
			name, qtype = "_sql._tcp."+name, "SRV"
		}
		fmt.Fprintf(&b, "%s %s\n", name, qtype)
	}
	return b.String()
}
