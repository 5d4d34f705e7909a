// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of kubectl-clusterset.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

// build is the version that was set when this was built.
var build string

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
	exitWrong  = 3
)

// errWrong is returned after failed checks, which are printed already.
var errWrong = errors.New("something is wrong")

// A usageError is a wrong command line.
type usageError struct{ error }

// Main runs the program, with the version that was set when it was built, and returns the exit status.
func Main(set string) int {
	build = set
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	// The errors have what the libraries would log.
	klog.SetLogger(klog.Logger{})
	klog.SetOutput(io.Discard)
	out, errOut := output.Escaped{Writer: os.Stdout}, output.Escaped{Writer: os.Stderr}
	err := execute(ctx, streams{In: os.Stdin, Out: out, ErrOut: errOut}, os.Args[1:])
	if err != nil && !errors.Is(err, errWrong) {
		fmt.Fprintln(errOut, "Error: "+err.Error())
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
