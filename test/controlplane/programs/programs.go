// SPDX-License-Identifier: Apache-2.0

// Package programs builds the programs of this module that tests start, once for all packages of tests.
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

// Build builds programs as they are shipped, static and without the race detector; but CoreDNS has the tag bed, see
// cmd/coredns. Each is given by its folder in the module, such as cmd/coredns. It returns what BuildIn does.
func Build(ctx context.Context, folders ...string) (string, error) {
	args := []string{"-tags=bed", "-ldflags=-s -w"}
	for _, folder := range folders {
		args = append(args, "./"+filepath.ToSlash(folder))
	}
	return BuildIn(ctx, ".", nil, args...)
}

// Folder is where programs are built: bin/tests of the checkout that the working directory is in. All tests have the same one,
// so that a program which is up to date is not linked again, and nobody else writes into it.
func Folder() (string, error) {
	root, err := Checkout()
	return filepath.Join(root, "bin", "tests"), err
}

// BuildIn builds programs of a module of the checkout, given by its folder, with flags of go build before them and variables
// of its environment. Each is called like the last part of its folder. It returns Folder. A build ends with the process that
// asked for it.
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

// Go runs the Go toolchain in a module of the checkout, given by its folder, without C and with more variables in its
// environment. It returns what that writes to standard output.
func Go(ctx context.Context, module string, environment []string, args ...string) (string, error) {
	root, err := Checkout()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", args...)
	// A toolchain that collects garbage as rarely as tests do is slower.
	command.Dir, command.Env = filepath.Join(root, module), append(append(os.Environ(), "CGO_ENABLED=0", "GOGC="), environment...)
	output, err := process.Output(command)
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), command.Dir, err)
	}
	return strings.TrimSpace(output), nil
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
