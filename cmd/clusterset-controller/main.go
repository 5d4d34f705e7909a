// SPDX-License-Identifier: Apache-2.0

// Command clusterset-controller publishes what its cluster exports and writes
// what the other clusters of the set export into it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clusterset-controller:", err)
		os.Exit(1)
	}
}
