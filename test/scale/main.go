// SPDX-License-Identifier: Apache-2.0

// Command scale measures a controller and a CoreDNS in a large cluster set: both on a real API server of their own, and
// all other clusters simulated. Package fleet says what of them is real and what is faked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/scale/fleet"
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
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	shape fleet.Shape
	// seed orders the changes.
	seed uint64
	// rate is how many endpoints change in a second, for so long as changes says.
	rate    int
	changes time.Duration
	// rest is how long nothing changes.
	rest time.Duration
	// memory is the limit of the controller's container in bytes.
	memory int64
	only   *regexp.Regexp
}

// shapes are the cluster sets that can be named.
var shapes = map[string]fleet.Shape{
	"wide":  {Members: 511, Services: 5000, Endpoints: 250_000, Spread: 5},
	"deep":  {Members: 50, Services: 250, Endpoints: 250_000, Spread: 10},
	"small": {Members: 10, Services: 20, Endpoints: 1000, Spread: 5},
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{only: regexp.MustCompile("")}
	// A set of its own, because packages of CoreDNS put flags into the one that all share.
	set := flag.NewFlagSet("scale", flag.ContinueOnError)
	set.SetOutput(stderr)
	named := set.String("shape", "wide", "wide (511 clusters), deep (50 clusters, larger services) or small")
	set.IntVar(&o.shape.Members, "members", 0, "`number` of simulated clusters instead of the shape's")
	set.IntVar(&o.shape.Services, "services", 0, "`number` of services instead of the shape's")
	set.IntVar(&o.shape.Endpoints, "endpoints", 0, "`number` of endpoints instead of the shape's")
	set.IntVar(&o.shape.Spread, "spread", 0, "`number` of clusters that export each service, instead of the shape's")
	set.Uint64Var(&o.seed, "seed", 1, "`number` that orders the changes")
	set.IntVar(&o.rate, "rate", 325, "changed endpoints in a `second`")
	set.DurationVar(&o.changes, "changes", 10*time.Minute, "how long endpoints change")
	set.DurationVar(&o.rest, "rest", 30*time.Second, "how long nothing changes")
	set.Int64Var(&o.memory, "memory", 512, "memory limit of the controller's container in `MiB`")
	set.Func("only", "run only the parts whose name matches this `regexp`: "+names(parts),
		func(text string) (err error) {
			o.only, err = regexp.Compile(text)
			return err
		})
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	shape, known := shapes[*named]
	if !known {
		return o, fmt.Errorf("-shape %s: use wide, deep or small", *named)
	}
	for _, each := range []struct{ given, of *int }{
		{&o.shape.Members, &shape.Members},
		{&o.shape.Services, &shape.Services},
		{&o.shape.Endpoints, &shape.Endpoints},
		{&o.shape.Spread, &shape.Spread},
	} {
		if *each.given == 0 {
			*each.given = *each.of
		}
	}
	o.memory <<= 20
	if o.rate < 1 || o.memory < 1 {
		return o, fmt.Errorf("-rate %d -memory %d: use 1 or more", o.rate, o.memory>>20)
	}
	return o, o.shape.Validate()
}

// command does what the command line says.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	measured, failure := measure(ctx, o, stderr)
	// What was measured before a failure says what failed.
	_, err = io.WriteString(stdout, measured.table().Markdown())
	return errors.Join(failure, err)
}

// part measures some of the figures.
type part struct {
	name string
	run  func(context.Context, *bed) error
}

// parts are all there are, in the order in which they run. The import always runs: the others need it.
var parts = []part{
	{"members", members},
	{"import", imports},
	{"rest", atRest},
	{"changes", changes},
	{"restart", restart},
	{"floors", floors},
}

const always = "import"

func names(parts []part) (all string) {
	for i, p := range parts {
		if i > 0 {
			all += ", "
		}
		all += p.name
	}
	return all
}

// measure runs the parts that are asked for.
func measure(ctx context.Context, o options, progress io.Writer) (r *result, err error) {
	b := &bed{options: o, progress: progress, began: time.Now(), result: newResult(o)}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.start(ctx); err != nil {
		return b.result, err
	}
	for _, p := range parts {
		if p.name != always && !o.only.MatchString(p.name) {
			continue
		}
		b.say("%s", p.name)
		b.part = p.name
		if err := p.run(ctx, b); err != nil {
			return b.result, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return b.result, nil
}
