// SPDX-License-Identifier: Apache-2.0

// Command bench measures the project's performance goals on real control planes and real sockets, and compares each
// figure with the least that any program can do. It measures two joined clusters, or a controller and a CoreDNS in a
// large cluster set with simulated members, and reports which goals are met. Package fleet documents which parts of the
// simulated clusters are real.
//
// All comparisons are made within one run. Compared programs take turns where possible, and processor time is measured
// instead of elapsed time if other load on the machine would distort it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if args := os.Args[1:]; len(args) > 0 && args[0] == plainCommand {
		err = runPlain(ctx, args[1:], os.Stdout)
	} else if err = process.TieToParent(); err == nil {
		debug.SetGCPercent(400) // garbage collections of the simulation compete for the processor
		err = command(ctx, args, os.Stdout, os.Stderr)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the sizes of the measurements.
type options struct {
	shape fleet.Shape
	joined
	scale
}

// joined has the sizes for joined clusters.
type joined struct {
	// rounds is how often the servers take turns under load, each time for the time load.
	rounds int
	load   time.Duration
	// exports is the number of exported services, and followed the number of changes that are followed between the clusters.
	exports, followed int
}

// scale has the sizes for a large set.
type scale struct {
	// rate is the number of endpoints that change per second, for the time changes.
	rate    int
	changes time.Duration
	// rest is the time without changes.
	rest time.Duration
}

// large are the shapes: many members with slices of 10 endpoints, few with slices of 100, and one service of many members.
var large = map[string]options{
	"wide": {shape: fleet.Shape{Members: 511, Services: 5000, Endpoints: 250_000, Spread: 5}, scale: scale{rate: 325}},
	"deep": {shape: fleet.Shape{Members: 50, Services: 250, Endpoints: 250_000, Spread: 10}, scale: scale{rate: 325}},
	"tall": {shape: fleet.Shape{Members: 200, Services: 1, Endpoints: 10_000, Spread: 200}, scale: scale{rate: 1}},
}

// command runs the command line.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{
		shape:  fleet.Shape{Members: 2, Services: 2000, Endpoints: 20_000, Spread: 2}, // for queries
		joined: joined{rounds: 7, load: 3 * time.Second, exports: 1000, followed: 600},
	}
	// The shared flag set has flags of CoreDNS's packages.
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(stderr)
	shape := set.String("shape", "", "`shape` of a large cluster set: wide, deep or tall; empty means two joined clusters")
	changes := set.Duration("changes", 10*time.Minute, "how long endpoints change in a large cluster set")
	if err := set.Parse(args); err != nil {
		return err
	}
	plans := joinedPlans
	if *shape != "" {
		var known bool
		if o, known = large[*shape]; !known {
			return fmt.Errorf("-shape %s: there is no such shape", *shape)
		}
		o.changes, o.rest = *changes, 30*time.Second
		plans = scalePlans(o)
	}
	tables, failure := measure(ctx, o, plans, stderr)
	// Figures from before a failure help to find its cause.
	for _, t := range tables {
		if _, err := io.WriteString(stdout, t.markdown()+"\n"); err != nil {
			return errors.Join(failure, err)
		}
	}
	return failure
}

// A plan lists the measurements on one bed, in order.
type plan struct {
	title, text string
	parts       []part
}

// part takes some of the figures.
type part func(*bed, context.Context) error

var joinedPlans = []plan{
	{"Queries", queriesText, []part{(*bed).start, (*bed).imports, (*bed).queries}},
	{"Joined clusters", joinedText, []part{(*bed).joinedClusters}},
}

func scalePlans(o options) []plan {
	return []plan{{
		fmt.Sprintf("%d clusters, %d services of %d endpoints", o.shape.Members, o.shape.Services, o.shape.Endpoints/o.shape.Services),
		fmt.Sprintf("Memory limit of the controller %d MiB; %d changes/s for %s.", memory, o.rate, o.changes),
		[]part{(*bed).start, (*bed).members, (*bed).imports, (*bed).atRest, (*bed).stream, (*bed).floors},
	}}
}

// measure runs the plans.
func measure(ctx context.Context, o options, plans []plan, progress io.Writer) (tables []*table, err error) {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	average, _, _ := strings.Cut(string(load), " ")
	about := fmt.Sprintf("%s; %d cores, %s; load average before %s", time.Now().UTC().Format("2 January 2006"),
		runtime.NumCPU(), runtime.Version(), average)
	for _, each := range plans {
		b := &bed{options: o, progress: progress, began: time.Now()}
		b.title, b.text = each.title, about+"\n"+each.text
		tables = append(tables, &b.table)
		for _, run := range each.parts {
			if err = run(b, ctx); err != nil {
				break
			}
		}
		if err := errors.Join(err, b.stop()); err != nil {
			return tables, err
		}
	}
	return tables, nil
}
