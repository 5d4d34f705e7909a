// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the project promises of its speed, on real control planes and real sockets,
// queries side by side with the least that any plugin can do, and shows which promises hold.
//
// Everything is compared in one run: those that are compared take turns, a figure is the median of the ratios of its
// rounds, and processor time is measured rather than time where a busy machine would disturb.
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
	"runtime"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

func main() {
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
	rounds int
	quick  bool
	only   *regexp.Regexp
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{only: regexp.MustCompile("")}
	// A set of its own, because packages of CoreDNS put flags into the one that all share.
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.IntVar(&o.rounds, "rounds", 7, "how many `rounds` each comparison has")
	set.BoolVar(&o.quick, "quick", false, "a short run that shows that everything works; its figures mean nothing")
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
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds %d: use 1 or more", o.rounds)
	}
	return o, nil
}

// command does what the command line says.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	about := describe(o)
	tables, err := measure(ctx, o, stderr)
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, about)
	for _, table := range tables {
		_, failed := io.WriteString(stdout, "\n"+table.Markdown())
		err = errors.Join(err, failed)
	}
	return err
}

// describe says when, where and how a run is taken.
func describe(o options) string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown\n")
	}
	text := fmt.Sprintf("%s, %d cores, %s, %d rounds; load averages before: %s", time.Now().UTC().Format("2 January 2006"),
		runtime.NumCPU(), runtime.Version(), o.rounds, load)
	if o.quick {
		text += "A quick run: its figures mean nothing.\n"
	}
	return text
}

// part measures some of the figures.
type part struct {
	name string
	run  func(context.Context, *bench) (figure.Table, error)
}

// parts are all there are, in the order in which they run.
var parts = []part{
	{"mixed", mixed},
	{"members", members},
	{"reconciles", reconciles},
}

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
func measure(ctx context.Context, o options, progress io.Writer) ([]figure.Table, error) {
	dir, err := os.MkdirTemp("", "clusterset-dns-bench-*")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the run: %w", err)
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, size: full, dir: dir, progress: progress, began: time.Now()}
	if o.quick {
		b.size = quick
		b.rounds = min(b.rounds, 2)
	}
	var tables []figure.Table
	for _, p := range parts {
		if !o.only.MatchString(p.name) {
			continue
		}
		b.say("%s", p.name)
		table, err := p.run(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		tables = append(tables, table)
	}
	if len(tables) == 0 {
		return nil, fmt.Errorf("-only %s: no part has such a name; there are %s", o.only, names(parts))
	}
	return tables, nil
}
