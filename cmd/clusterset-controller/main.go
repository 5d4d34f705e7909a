// SPDX-License-Identifier: Apache-2.0

// Command clusterset-controller publishes what its cluster exports and writes
// what the other clusters of the set export into it.
package main

import (
	"os"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/command"
)

// version is set with -ldflags.
var version string

func main() { os.Exit(command.Main(version)) }
