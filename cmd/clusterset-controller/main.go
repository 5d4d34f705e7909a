// SPDX-License-Identifier: Apache-2.0

// Command clusterset-controller publishes the exports of its cluster, and imports the exports of the other clusters of the set.
package main

import (
	"os"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/command"
)

// version is set with -ldflags.
var version string

func main() { os.Exit(command.Main(version)) }
