// SPDX-License-Identifier: Apache-2.0

// Command plain is the least that a controller can do: it sends the same requests to the same API servers, and knows
// beforehand what to write. It prints what that took as JSON: a figure.Floor.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/usage"
)

// plain is a client of the local cluster.
type plain struct {
	*objects.Client
	namespace string
	rate      int
	lasts     time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var p plain
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig `file` of the local cluster")
	flag.StringVar(&p.namespace, "namespace", "", "`namespace` of the members' Secrets")
	flag.IntVar(&p.rate, "rate", 0, "changed slices in a `second`")
	flag.DurationVar(&p.lasts, "for", 0, "how long slices change, or nothing does")
	flag.Parse()
	parts := map[string]func(context.Context, *figure.Floor) error{
		"import": p.imports, "changes": p.changes, "rest": p.rest,
	}
	part := parts[flag.Arg(0)]
	if part == nil {
		return fmt.Errorf("part %q: use import, changes or rest", flag.Arg(0))
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	if p.Client, err = objects.New(config); err != nil {
		return err
	}
	var result figure.Floor
	if err := part(ctx, &result); err != nil {
		return fmt.Errorf("%s: %w", flag.Arg(0), err)
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// floor begins the names of the namespaces that this program writes to. They exist.
const floor = "floor-"

// atOnce is how many services are written at a time.
const atOnce = 16

// imports writes what the controller wrote for each import, once more in other namespaces.
func (p *plain) imports(ctx context.Context, result *figure.Floor) error {
	all, err := p.Made(ctx)
	if err != nil {
		return err
	}
	return during(result, func() error { return p.Copy(ctx, all, floor, atOnce) })
}

// during notes how long something took, and the processor time of this process.
func during(result *figure.Floor, do func() error) error {
	before, err := usage.OwnCPU()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	result.Took = time.Since(began)
	after, err := usage.OwnCPU()
	result.CPU = after - before
	return err
}
