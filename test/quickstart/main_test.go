// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/sandbox"
	"github.com/clusterset-dns/clusterset-dns/test/quickstart/live"
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
	if err := live.Build(root, folder); err != nil {
		return nil, err
	}
	for part, packages := range map[string][]string{
		"user":   {"./cmd/kubectl-clusterset"},
		"images": {"./cmd/coredns", "./cmd/clusterset-controller"},
		"slim":   {"-tags=slim", "./cmd/coredns"},
	} {
		if err := live.Compile(root, filepath.Join(folder, part), packages...); err != nil {
			return nil, err
		}
	}
	return remove, os.Setenv(programsVariable, folder)
}

func inside() (err error) {
	if err := sandbox.Setup(live.Programs...); err != nil {
		return err
	}
	router, err = network.Own()
	return err
}
