// SPDX-License-Identifier: Apache-2.0

// Command build-binaries builds the programs of the test bed's control planes, where the cache
// lacks them, and prints the path of each.
package main

import (
	"context"
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
	if err := process.TieToParent(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	paths, err := assets.Ensure(ctx, os.Stderr, assets.All()...)
	if err != nil {
		return err
	}
	for _, program := range assets.All() {
		fmt.Println(paths[program])
	}
	return nil
}
