// SPDX-License-Identifier: Apache-2.0

// Command release builds the parts of a release other than the chart: archives of the programs, the manifest for krew,
// the release notes, and images, without a container engine. Archives and images have SBOMs. It can push images.
//
// Each image becomes an OCI image layout, which skopeo, crane, oras and ctr read. Builds are reproducible: the same
// source and toolchain give the same bytes. `make release`, `make images` and `make push` run it in its folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// options are the options of the command line.
type options struct {
	version, revision string
	created           time.Time
	out, images       string
	scratch           string   // a directory for programs
	platforms         []string // GOOS/GOARCH; all of a release if empty
	registry          string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	var platforms string
	var epoch int64
	flag.StringVar(&o.version, "version", "unknown", "`version` of the programs, without a leading v, and tag of the images")
	flag.StringVar(&o.revision, "revision", "", "`commit` that the images are built from")
	flag.Int64Var(&epoch, "epoch", 0, "`time` of what is built, and of the files in it, in seconds since 1970")
	flag.StringVar(&o.out, "out", "", "`directory` that gets the archives")
	flag.StringVar(&o.images, "images", "", "`directory` that gets a layout for each image")
	flag.StringVar(&platforms, "platforms", "", "`platforms`, separated by commas; empty means all of a release")
	flag.StringVar(&o.registry, "push", "", "push the images to this `registry`, for example ghcr.io/clusterset-dns, and build nothing")
	flag.Parse()
	if o.out == "" && o.images == "" {
		return fmt.Errorf("-out and -images are missing: name a directory")
	}
	o.created = time.Unix(epoch, 0).UTC()
	o.platforms = strings.FieldsFunc(platforms, func(r rune) bool { return r == ',' })
	var err error
	if o.scratch, err = os.MkdirTemp("", "release-*"); err != nil {
		return err
	}
	defer os.RemoveAll(o.scratch)
	if o.out != "" {
		if err := archives(ctx, o); err != nil {
			return err
		}
	}
	if o.images == "" {
		return nil
	}
	for _, program := range programs {
		do := program.build
		if o.registry != "" {
			do = program.push
		}
		if err := do(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", program.name, err)
		}
	}
	return nil
}

// source is the directory of the product's module.
var source = filepath.Join("..", "..")

// compile builds a static program for a platform, once per process, and returns its path.
func (o options) compile(ctx context.Context, program, tags, system, arch string) (string, error) {
	path := filepath.Join(o.scratch, strings.Join([]string{program, tags, system, arch}, "_"))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	fmt.Printf("compiling %s for %s/%s %s\n", program, system, arch, tags)
	// The same flags as in the Makefile.
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags="+tags,
		"-ldflags=-s -w -X main.version="+o.version, "-o", path, "./cmd/"+program)
	command.Dir = source
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %s for %s/%s: %w\n%s", program, system, arch, err, strings.TrimSpace(string(output)))
	}
	return path, nil
}
