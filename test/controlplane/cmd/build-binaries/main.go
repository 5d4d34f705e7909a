// SPDX-License-Identifier: Apache-2.0

// Command build-binaries builds the programs that its arguments name, such as kubectl, where the cache lacks them;
// without arguments those that each control plane of the test bed runs. With -paths it prints where each is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
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
	wanted := assets.Cluster()
	if flag.NArg() > 0 {
		wanted = nil
	}
	for _, name := range flag.Args() {
		if !slices.Contains(assets.All(), assets.Program(name)) {
			return fmt.Errorf("%s is none of the programs %v", name, assets.All())
		}
		wanted = append(wanted, assets.Program(name))
	}
	paths, err := assets.Ensure(ctx, os.Stderr, wanted...)
	if err != nil {
		return err
	}
	if *printPaths {
		for _, program := range wanted {
			fmt.Println(paths[program])
		}
	}
	return nil
}
