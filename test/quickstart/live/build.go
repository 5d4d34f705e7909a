// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// Build provides what the clusters and their user have besides clusterset-dns: the control planes, and in a folder
// stock/coredns, user/helm and user/kubectl. It needs the network.
func Build(folder string) error {
	paths, err := assets.Ensure(context.Background(), os.Stderr, append(assets.Cluster(), assets.Kubectl)...)
	if err != nil {
		return err
	}
	helm, err := assets.Tool(context.Background(), "helm", "helm")
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, "user"), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(helm, filepath.Join(folder, "user", "helm")); err != nil {
		return err
	}
	// The checkout, in which it is, may be hidden.
	if output, err := exec.Command("cp", paths[assets.Kubectl], filepath.Join(folder, "user")).CombinedOutput(); err != nil {
		return fmt.Errorf("copy kubectl: %w\n%s", err, output)
	}
	_, err = programs.Go(context.Background(), ".", nil, "build", "-trimpath", "-ldflags=-w", "-o",
		filepath.Join(folder, "stock")+"/", "github.com/coredns/coredns")
	return err
}
