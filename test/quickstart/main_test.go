// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/sandbox"
)

const (
	root = "../.."
	// folderVariable passes the folder with the releases and programs to the test in the sandbox.
	folderVariable = "CLUSTERSET_DNS_QUICKSTART_FOLDER"
)

// router is the network of this process. The API servers listen in it, and nodes are attached to it.
var router *network.Namespace

func TestMain(m *testing.M) { sandbox.Main(m, outside, inside) }

// outside provides the releases, in the folders before and after, and the programs.
func outside() (clean func(), err error) {
	folder, remove, err := process.Scratch("quickstart")
	if err != nil {
		return nil, err
	}
	clean = func() { _ = remove() }
	defer func() {
		if err != nil {
			clean()
		}
	}()
	if err := build(folder); err != nil {
		return nil, err
	}
	given := strings.Fields(os.Getenv("RELEASES"))
	if len(given) != 0 && len(given) != 2 {
		return nil, fmt.Errorf("RELEASES has %d directories, want the older and the newer release", len(given))
	}
	for i, name := range []string{"before", "after"} {
		into := filepath.Join(folder, name)
		command := exec.Command("make", "--no-print-directory", "-C", root, "release", fmt.Sprintf("VERSION=0.%d.0", i+1),
			"RELEASE="+into, "PLATFORMS=linux/"+runtime.GOARCH)
		if len(given) > 0 {
			// A copy, because the originals may be in the checkout.
			command = exec.Command("cp", "-r", given[i], into)
		}
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
	}
	return clean, os.Setenv(folderVariable, folder)
}

func inside() (err error) {
	if router, err = sandbox.Setup("nsenter", "chroot", "ip", "nft", "iptables", "ip6tables"); err != nil {
		return err
	}
	// Nodes also have the router's address on their links. With another source address (RFC 5737), pods can answer this process.
	const own = "198.51.100.1"
	return errors.Join(router.AddAddress(netip.MustParseAddr(own)), router.Filter("table ip own {\nchain postrouting {\n"+
		"type nat hook postrouting priority srcnat\nip saddr 169.254.1.1 snat to "+own+"\n}\n}\n"))
}

// build provides everything except clusterset-dns: the control planes and, in a folder, stock/coredns, user/helm and
// user/kubectl. It needs network access.
func build(folder string) error {
	paths, err := assets.Ensure()
	if err != nil {
		return err
	}
	helm, err := assets.Helm(context.Background(), "helm")
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, "user"), 0o700); err != nil {
		return err
	}
	if err := errors.Join(os.Symlink(helm, filepath.Join(folder, "user", "helm")),
		os.Symlink(paths[assets.Kubectl], filepath.Join(folder, "user", "kubectl"))); err != nil {
		return err
	}
	_, err = programs.Go(context.Background(), ".", nil, "build", "-trimpath", "-ldflags=-w", "-o",
		filepath.Join(folder, "stock")+"/", "github.com/coredns/coredns")
	return err
}
