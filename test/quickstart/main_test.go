// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/sandbox"
	"github.com/clusterset-dns/clusterset-dns/test/quickstart/live"
)

const (
	root = "../.."
	// folderVariable tells the test inside the sandbox where the one outside has put the releases and the programs.
	folderVariable = "CLUSTERSET_DNS_QUICKSTART_FOLDER"
)

// router is the network of this process, in which the API servers listen, and which pods are attached to.
var router *network.Namespace

func TestMain(m *testing.M) { sandbox.Main(m, outside, inside) }

// outside provides the releases, as the folders before and after, and the programs.
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
	if err := live.Build(folder); err != nil {
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
			// Not where they are, which may be in the checkout.
			command = exec.Command("cp", "-r", given[i], into)
		}
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
	}
	return remove, os.Setenv(folderVariable, folder)
}

func inside() (err error) {
	if err := sandbox.Setup(live.Programs...); err != nil {
		return err
	}
	router, err = network.Own()
	return err
}
