// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
)

// Build provides what the clusters and their user have besides clusterset-dns: the control planes, and in a folder
// stock/coredns, user/helm and user/kubectl. It needs the network and root, which is that of the repository.
func Build(root, folder string) error {
	paths, err := assets.Ensure(context.Background(), os.Stderr, append(assets.Cluster(), assets.Kubectl)...)
	if err != nil {
		return err
	}
	// The same as in the Makefile, so that nothing is built twice.
	helm, err := goTool(filepath.Join(root, "test", "tools", "helm"), []string{"GOWORK=off", "GOFLAGS=-tags=remove_all_sd"},
		"tool", "-n", "helm")
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, "user"), 0o700); err != nil {
		return err
	}
	for name, path := range map[string]string{"helm": helm, "kubectl": paths[assets.Kubectl]} {
		if err := os.Symlink(path, filepath.Join(folder, "user", name)); err != nil {
			return err
		}
	}
	return Compile(root, filepath.Join(folder, "stock"), "github.com/coredns/coredns")
}

// Compile builds programs of the product's module, or that it requires, into a folder. There may be flags before them.
func Compile(root, into string, packages ...string) error {
	_, err := goTool(root, nil, append([]string{"build", "-trimpath", "-ldflags=-w", "-o", into + "/"}, packages...)...)
	return err
}

// goTool runs the Go toolchain and returns what it wrote.
func goTool(directory string, environment []string, args ...string) (string, error) {
	command := exec.Command("go", args...)
	command.Dir = directory
	command.Env = append(append(os.Environ(), "CGO_ENABLED=0"), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(output)), nil
}
