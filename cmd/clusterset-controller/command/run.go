// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of clusterset-controller.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// build is the version that was set when this was built.
var build string

// Main runs the controller, with the version that was set when it was built, and returns the exit status.
func Main(set string) int {
	build = set
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newCommand().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if logged := (loggedError{}); !errors.As(err, &logged) {
		fmt.Fprintln(os.Stderr, "clusterset-controller:", err)
	}
	return 1
}
