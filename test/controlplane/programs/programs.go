// SPDX-License-Identifier: Apache-2.0

// Package programs builds the programs of this module that tests start, once for all packages of tests.
package programs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/internal/flock"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Build builds programs as they are shipped, static and without the race detector; but CoreDNS has the tag bed, see
// cmd/coredns. Each is given by its folder in the module, such as cmd/coredns, and called like the last part of it. It
// returns the absolute path of their folder, bin/tests of the checkout that the working directory is in. All tests have
// the same one, so that a program which is up to date is not linked again, and nobody else writes into it. A build ends
// with the process that asked for it.
func Build(ctx context.Context, folders ...string) (string, error) {
	root, err := Checkout()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin", "tests")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	unlock, err := flock.Wait(ctx, bin+".lock", func() {})
	if err != nil {
		return "", err
	}
	defer unlock()
	args := []string{"build", "-trimpath", "-tags=bed", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)}
	for _, folder := range folders {
		args = append(args, "./"+filepath.ToSlash(folder))
	}
	build := exec.CommandContext(ctx, "go", args...)
	// A toolchain that collects garbage as rarely as tests do is slower.
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOGC=")
	var output bytes.Buffer
	build.Stdout, build.Stderr = &output, &output
	if err = process.StartTied(build); err == nil {
		err = build.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("build %v: %w\n%s", folders, err, output.String())
	}
	return bin, nil
}

// Checkout is the folder of the go.work that the working directory belongs to.
func Checkout() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("no go.work in %s or above it: run this in a checkout", start)
		}
	}
}
