// SPDX-License-Identifier: Apache-2.0

// Package programs builds the programs of this module for tests, once for all packages of tests.
package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Build builds programs as they are released, static and without the race detector, except that CoreDNS has the tag
// bed, see cmd/coredns. folders are folders of the module, such as cmd/coredns. It returns the result of BuildIn.
func Build(ctx context.Context, folders ...string) (string, error) {
	args := []string{"-tags=bed", "-ldflags=-s -w"}
	for _, folder := range folders {
		args = append(args, "./"+filepath.ToSlash(folder))
	}
	return BuildIn(ctx, ".", nil, args...)
}

// Folder returns the folder of built programs: bin/tests in the checkout of the working directory. All tests use the
// same folder, so that a program that is up to date is not linked again, and nothing else writes into it.
func Folder() (string, error) {
	root, err := Checkout()
	return filepath.Join(root, "bin", "tests"), err
}

// BuildIn builds programs of a module, by its folder in the checkout, with additional environment variables. args are
// flags of go build and the folders of the programs; a program has the last element of its folder as its name. It
// returns Folder. If the calling process ends, so does the build.
func BuildIn(ctx context.Context, module string, environment []string, args ...string) (string, error) {
	bin, err := Folder()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	unlock, err := process.Lock(bin, true)
	if err != nil {
		return "", err
	}
	defer unlock()
	args = append([]string{"build", "-trimpath", "-o", bin + string(filepath.Separator)}, args...)
	_, err = Go(ctx, module, environment, args...)
	return bin, err
}

// Go runs the Go toolchain in a module, by its folder in the checkout, without cgo and with additional environment
// variables. It returns the standard output.
func Go(ctx context.Context, module string, environment []string, args ...string) (string, error) {
	root, err := Checkout()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", args...)
	// The GOGC of tests would make the toolchain slower.
	command.Dir, command.Env = filepath.Join(root, module), append(append(os.Environ(), "CGO_ENABLED=0", "GOGC="), environment...)
	output, err := process.Output(command)
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), command.Dir, err)
	}
	return strings.TrimSpace(output), nil
}

// Checkout returns the folder of the go.work for the working directory.
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
