// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/sandbox"
)

const (
	root = "../.."
	// programsVariable tells the test inside the sandbox where the programs are that the one outside has built.
	programsVariable = "CLUSTERSET_DNS_QUICKSTART_PROGRAMS"
)

// router is the network of this process, in which the API servers listen, and which pods are attached to.
var router *network.Namespace

func TestMain(m *testing.M) { sandbox.Main(m, outside, inside) }

// outside provides the programs.
func outside() (clean func(), err error) {
	folder, err := os.MkdirTemp("", "clusterset-dns-quickstart-")
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.RemoveAll(folder) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	for _, part := range []string{"user", "images", "slim", "stock"} {
		if err := os.Mkdir(filepath.Join(folder, part), 0o700); err != nil {
			return nil, err
		}
	}
	paths, err := assets.Ensure(context.Background(), os.Stderr, append(assets.Cluster(), assets.Kubectl)...)
	if err != nil {
		return nil, err
	}
	// The same as in the Makefile, so that nothing is built twice.
	helm, err := goTool(filepath.Join(root, "test", "tools", "helm"), "GOFLAGS=-tags=remove_all_sd", "tool", "-n",
		"helm")
	if err != nil {
		return nil, err
	}
	for name, path := range map[string]string{"helm": helm, "kubectl": paths[assets.Kubectl]} {
		if err := os.Symlink(path, filepath.Join(folder, "user", name)); err != nil {
			return nil, err
		}
	}
	for part, packages := range map[string][]string{
		"user":   {"./cmd/kubectl-clusterset"},
		"images": {"./cmd/coredns", "./cmd/clusterset-controller"},
		"slim":   {"-tags=slim", "./cmd/coredns"},
		"stock":  {"github.com/coredns/coredns"},
	} {
		build := append([]string{"build", "-trimpath", "-ldflags=-w", "-o", filepath.Join(folder, part) + "/"},
			packages...)
		if _, err := goTool(root, "CGO_ENABLED=0", build...); err != nil {
			return nil, err
		}
	}
	return remove, os.Setenv(programsVariable, folder)
}

// goTool runs the Go toolchain and returns what it wrote.
func goTool(directory, variable string, args ...string) (string, error) {
	command := exec.Command("go", args...)
	command.Dir = directory
	command.Env = append(os.Environ(), "CGO_ENABLED=0", variable)
	if directory != root {
		command.Env = append(command.Env, "GOWORK=off") // a module of its own
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(output)), nil
}

func inside() (err error) {
	if err := sandbox.Setup("nsenter", "chroot", "sh", "nft"); err != nil {
		return err
	}
	router, err = network.Own()
	return err
}
