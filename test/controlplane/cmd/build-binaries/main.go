// SPDX-License-Identifier: Apache-2.0

// Command build-binaries builds the programs of the test bed's control planes, where the cache
// lacks them. With -paths it prints where each is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "build-binaries:", err)
		os.Exit(1)
	}
}

func run() error {
	printPaths := flag.Bool("paths", false, "print the path of each program")
	flag.Parse()
	if err := process.TieToParent(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	paths, err := assets.Ensure(ctx, os.Stderr, assets.All()...)
	if err != nil {
		return err
	}
	if *printPaths {
		for _, program := range assets.All() {
			fmt.Println(paths[program])
		}
	}
	return nil
}
