// SPDX-License-Identifier: Apache-2.0

// Command clusterset-controller publishes what its cluster exports and writes
// what the other clusters of the set export into it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// version is set with -ldflags.
var version string

// versionOf is the version that was set, or that of the module or the revision
// this was built from.
func versionOf(set string, read func() (*debug.BuildInfo, bool)) string {
	if set != "" {
		return set
	}
	info, ok := read()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "unknown"
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		if logged := (loggedError{}); !errors.As(err, &logged) {
			fmt.Fprintln(os.Stderr, "clusterset-controller:", err)
		}
		os.Exit(1)
	}
}
