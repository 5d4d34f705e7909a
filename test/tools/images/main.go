// SPDX-License-Identifier: Apache-2.0

// Images builds the container images of the programs, without a container
// engine: from scratch, for several platforms, with an SBOM for each.
//
// Each image becomes an OCI image layout, which skopeo, crane, oras and ctr
// read. The same source and toolchain give the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	out       string
	version   string
	revision  string
	created   time.Time
	platforms []string // GOOS/GOARCH
	registry  string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	var platforms string
	var epoch int64
	flag.StringVar(&o.out, "out", "", "`directory` that gets a layout for each image")
	flag.StringVar(&o.version, "version", "unknown", "`version` of the programs, and tag of the images")
	flag.StringVar(&o.revision, "revision", "", "`commit` that the programs are built from")
	flag.Int64Var(&epoch, "epoch", 0, "`time` of the images and the files in them, in seconds since 1970")
	flag.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "`platforms`, separated by commas")
	flag.StringVar(&o.registry, "push", "", "push what was built to this `registry`, for example "+
		"ghcr.io/clusterset-dns, and build nothing")
	flag.Parse()
	if o.out == "" {
		return fmt.Errorf("-out is missing: name the directory that gets the images")
	}
	o.created = time.Unix(epoch, 0).UTC()
	o.platforms = strings.Split(platforms, ",")
	for _, program := range programs {
		do := build
		if o.registry != "" {
			do = push
		}
		if err := do(ctx, o, program); err != nil {
			return fmt.Errorf("%s: %w", program.name, err)
		}
	}
	return nil
}
