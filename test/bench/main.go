// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the project promises of its speed, on real control planes and real sockets, side by side
// with the least that any program can do, and shows which promises hold: two clusters that are joined, or a controller and
// a CoreDNS in a large cluster set, in which all other clusters are simulated. Package fleet says what of them is real and
// what is faked.
//
// Everything is compared in one run: those that are compared take turns where they can, and processor time is measured
// rather than time where a busy machine would disturb.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

func main() {
	debug.SetGCPercent(400) // collections of the simulation take processor time from what is measured
	err := process.TieToParent()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = command(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	shape string
	size
	// rate is how many endpoints change in a second, for so long as changes says.
	rate    int
	changes time.Duration
	// rest is how long nothing changes.
	rest time.Duration
	// memory is the limit of the controller's container in MiB.
	memory int64
}

// size is how much is measured of joined clusters.
type size struct {
	// rounds is how often servers are under load in turns, for as long as load.
	rounds int
	load   time.Duration
	// exports is the number of exported services, and followed how many changes are followed from one cluster to the other.
	exports, followed int
}

// full is what the documents tell of.
var full = size{rounds: 7, load: 3 * time.Second, exports: 1000, followed: 600}

// joined is the shape of two clusters, both real. The others are those of a large set.
const joined = "joined"

var shapes = map[string]fleet.Shape{
	joined: {Members: 2, Services: 2000, Endpoints: 20_000, Spread: 2}, // for queries
	"wide": {Members: 511, Services: 5000, Endpoints: 250_000, Spread: 5},
	"deep": {Members: 50, Services: 250, Endpoints: 250_000, Spread: 10},
	// One service, which changes once in a second: see the Makefile.
	"tall":  {Members: 200, Services: 1, Endpoints: 10_000, Spread: 200},
	"small": {Members: 10, Services: 20, Endpoints: 1000, Spread: 5},
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{size: full}
	// A set of its own, because packages of CoreDNS put flags into the one that all share.
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&o.shape, "shape", joined, strings.Join(slices.Sorted(maps.Keys(shapes)), ", "))
	set.IntVar(&o.rate, "rate", 325, "changed endpoints in a `second`")
	set.DurationVar(&o.changes, "changes", 10*time.Minute, "how long endpoints change")
	set.DurationVar(&o.rest, "rest", 30*time.Second, "how long nothing changes")
	set.Int64Var(&o.memory, "memory", 512, "memory limit of the controller's container in `MiB`")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if _, known := shapes[o.shape]; !known || set.NArg() > 0 || o.rate < 1 || o.memory < 1 {
		return o, fmt.Errorf("-shape %s -rate %d -memory %d: there is no such shape, one is not positive, or there are arguments",
			o.shape, o.rate, o.memory)
	}
	return o, nil
}

// command does what the command line says.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	measured, failure := measure(ctx, o, stderr)
	// What was measured before a failure says what failed.
	for _, table := range measured {
		if _, err := io.WriteString(stdout, table.Markdown()+"\n"); err != nil {
			return errors.Join(failure, err)
		}
	}
	return failure
}

// about says when, where and how a run is taken.
func (o options) about() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	average, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%s; %d cores, %s; load average before %s", time.Now().UTC().Format("2 January 2006"),
		runtime.NumCPU(), runtime.Version(), average)
}

// A plan is what is measured on one bed.
type plan struct {
	title, text string
	parts       []part
}

// part measures some of the figures.
type part struct {
	name string
	run  func(context.Context, *bed) error
}

// plans says what is measured of a shape, in this order.
func (o options) plans() []plan {
	if o.shape == joined {
		return []plan{
			{"Queries", queriesText, []part{{"dns", queries}}},
			{"Joined clusters", joinedText, []part{{"members", joinedClusters}}},
		}
	}
	shape := shapes[o.shape]
	return []plan{{
		fmt.Sprintf("%d clusters, %s services of %s endpoints", shape.Members, figure.Thousands(shape.Services),
			figure.Thousands(shape.Endpoints/shape.Services)),
		fmt.Sprintf("Memory limit of the controller %d MiB; %d changes/s for %s.", o.memory, o.rate, o.changes),
		[]part{
			{"start", start},
			{"members", members},
			{"import", imports},
			{"rest", atRest},
			{"changes", changes},
			{"floors", floors},
		},
	}}
}

// measure runs the plans.
func measure(ctx context.Context, o options, progress io.Writer) (tables []*figure.Table, err error) {
	about := o.about()
	for _, each := range o.plans() {
		b := &bed{options: o, progress: progress, began: time.Now(), shape: shapes[o.shape]}
		b.Title, b.Text = each.title, about+"\n"+each.text
		tables = append(tables, &b.Table)
		if err := errors.Join(b.measure(ctx, each.parts), b.stop()); err != nil {
			return tables, err
		}
	}
	return tables, nil
}

func (b *bed) measure(ctx context.Context, parts []part) error {
	for _, p := range parts {
		b.say("%s", p.name)
		if err := p.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
