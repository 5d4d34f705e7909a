// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"

	controller "github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/command"
	coredns "github.com/clusterset-dns/clusterset-dns/cmd/coredns/command"
	plugin "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/command"
)

// programs are those of the product, as their main functions have them. The demo has them all in one executable, which
// is one of them if it is called by its name: what is linked once takes a third of the time of three.
var programs = map[string]func(version string) int{
	"clusterset-controller": controller.Main,
	"coredns":               func(version string) int { coredns.Main(version); return 0 },
	"kubectl-clusterset":    plugin.Main,
}

// link makes a folder in which this executable has the names of the programs.
func link(folder string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name := range programs {
		if err := os.Symlink(self, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// beProgram runs the program that this executable is called by, and does not return then.
func beProgram() {
	if run := programs[filepath.Base(os.Args[0])]; run != nil {
		os.Exit(run("demo"))
	}
}
