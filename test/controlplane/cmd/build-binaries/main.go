// SPDX-License-Identifier: Apache-2.0

// Command build-binaries builds the programs of the test bed unless they are in the cache of the Go toolchain.
package main

import (
	"fmt"
	"os"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

func main() {
	err := process.TieToParent()
	if err == nil {
		_, err = assets.Ensure()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build-binaries:", err)
		os.Exit(1)
	}
}
