// SPDX-License-Identifier: Apache-2.0

// Command kubectl-clusterset is a plugin of kubectl: it joins clusters, looks at
// the set, and says why a name answers what it answers.
//
// docs/reference/kubectl-clusterset.md is its manual.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
)

// version is set with -ldflags.
var version string

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
	exitWrong  = 3
)

// errWrong is of a look that found something wrong, which is printed already.
var errWrong = errors.New("something is wrong")

// A usageError is of a command line that is wrong.
type usageError struct{ error }

func main() { os.Exit(run()) }

// run returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// What the libraries log is told in errors.
	klog.SetLogger(klog.Logger{})
	klog.SetOutput(io.Discard)
	command := newCommand(streams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	err := command.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errWrong) {
		fmt.Fprintln(os.Stderr, "Error: "+err.Error())
	}
	return exitStatus(err)
}

func exitStatus(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errWrong):
		return exitWrong
	case errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}
